/*
 * cuDNN's recurrent layers, as far as torch asks where in one buffer their weights lie. For each
 * layer and direction the matrices come first, then the biases, each in the order of their gates.
 */
#include "stub.h"

enum { MODE_LSTM = 2, MODE_GRU = 3, NO_BIAS = 0, BIDIRECTIONAL = 1, DIMS = 3 };
enum { TYPE_FLOAT = 0, TYPE_DOUBLE = 1 };

struct rnn {
	struct stub_handle handle;
	int gates; /* matrices of a layer and direction, half of them recurrent */
	int directions, layers;
	size_t input, hidden, element;
	bool bias;
};

struct tensor {
	struct stub_handle handle;
	int dims[DIMS];
};

BODY(int, cudnnCreateRNNDescriptor)(struct rnn **out)
{
	*out = stub_handle_sized(sizeof(struct rnn));
	return COUNT(cudnnCreateRNNDescriptor);
}

BODY(int, cudnnCreateTensorDescriptor)(struct tensor **out)
{
	*out = stub_handle_sized(sizeof(struct tensor));
	return COUNT(cudnnCreateTensorDescriptor);
}

BODY(int, cudnnSetRNNDescriptor_v8)
(struct rnn *r, int algorithm, int mode, int bias, int direction, int input_mode, int type,
 int precision, int math, int input, int hidden, int projection, int layers, void *dropout,
 unsigned flags)
{
	(void)algorithm, (void)input_mode, (void)precision, (void)math, (void)projection;
	(void)dropout, (void)flags;
	r->gates = mode == MODE_LSTM ? 8 : mode == MODE_GRU ? 6 : 2;
	r->directions = direction == BIDIRECTIONAL ? 2 : 1;
	r->layers = layers;
	r->input = (size_t)input;
	r->hidden = (size_t)hidden;
	r->element = type == TYPE_DOUBLE ? 8 : type == TYPE_FLOAT ? 4 : 2;
	r->bias = bias != NO_BIAS;
	return COUNT(cudnnSetRNNDescriptor_v8);
}

static size_t columns(const struct rnn *r, int layer, int gate)
{
	if (gate >= r->gates / 2)
		return r->hidden;
	return layer < r->directions ? r->input : r->hidden * (size_t)r->directions;
}

/* The number of elements before the matrix, or the bias, of a gate; `layer` counts directions. */
static size_t place(const struct rnn *r, int layer, int gate, bool bias)
{
	size_t before = 0;

	for (int l = 0; l <= layer; l++) {
		int end = l < layer || bias ? r->gates : gate;

		for (int g = 0; g < end; g++)
			before += r->hidden * columns(r, l, g);
		if (r->bias)
			before += r->hidden * (size_t)(l < layer ? r->gates : bias ? gate : 0);
	}
	return before;
}

BODY(int, cudnnGetRNNWeightSpaceSize)(void *handle, const struct rnn *r, size_t *bytes)
{
	(void)handle;
	*bytes = place(r, r->layers * r->directions, 0, false) * r->element;
	return COUNT(cudnnGetRNNWeightSpaceSize);
}

static void set_dims(struct tensor *t, const struct rnn *r, size_t width)
{
	if (!t)
		return;
	t->dims[0] = 1;
	t->dims[1] = (int)r->hidden;
	t->dims[2] = (int)width;
}

/* A caller leaves out what it does not ask for. */
BODY(int, cudnnGetRNNWeightParams)
(void *handle, const struct rnn *r, int layer, size_t bytes, char *space, int gate,
 struct tensor *matrix_tensor, void **matrix, struct tensor *bias_tensor, void **bias)
{
	(void)handle, (void)bytes;
	set_dims(matrix_tensor, r, columns(r, layer, gate));
	set_dims(bias_tensor, r, 1);
	if (matrix)
		*matrix = space + place(r, layer, gate, false) * r->element;
	if (bias)
		*bias = r->bias ? space + place(r, layer, gate, true) * r->element : NULL;
	return COUNT(cudnnGetRNNWeightParams);
}

BODY(int, cudnnGetTensorNdDescriptor)
(const struct tensor *t, int room, int *type, int *dims, int sizes[], int strides[])
{
	*type = TYPE_FLOAT;
	*dims = DIMS;
	for (int i = 0; i < DIMS && i < room; i++) {
		sizes[i] = t->dims[i];
		strides[i] = 1;
	}
	return COUNT(cudnnGetTensorNdDescriptor);
}
