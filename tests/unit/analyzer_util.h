/*
 * analyzer_util.h: traces of invented programs for the tests of analyzer/, written by the real writer.
 *
 * A unit of time is 1 ns of an invented clock that begins when the trace is opened. What is asserted is
 * in these units and exact.
 */
#pragma once

#include "tests/unit/traces_util.h"

#include <math.h>

#include "analyzer/model.h"
#include "analyzer/process_ledger.h"

struct synth {
	char *path;
	struct trace_file *file;
	uint64_t base;
	struct trace_reader *reader;
	struct model model;
};

#define STR(text) ((struct trace_str){ text, (uint32_t)strlen(text) })

static UNUSED void synth_open(struct synth *synth)
{
	*synth = (struct synth){ .path = temp_path() };
	synth->file = calloc(1, sizeof(*synth->file));
	/* Units of 1 ns, whatever this machine's counter does. */
	assert_int_equal(trace_file_create(
				 synth->file, synth->path,
				 (struct trace_clock_pair){ 1, machine_clock_ns(CLOCK_MONOTONIC) }),
			 0);
	synth->file->max_bytes = UINT64_MAX;
	synth->base = synth->file->header->open.units;
}

static UNUSED struct trace_buffer *synth_thread(struct synth *synth, uint32_t depth)
{
	struct trace_buffer *buffer = trace_buffer_acquire(synth->file, depth);

	assert_non_null(buffer);
	/* Its clock begins with the trace, not now. */
	buffer->last_time = buffer->live->first_time = synth->base;
	return buffer;
}

static UNUSED void synth_code(struct trace_buffer *buffer, uint32_t id, const char *file,
			      const char *name)
{
	struct record_CODE record = {
		.code = id, .first_line = 1, .file = STR(file), .name = STR(name)
	};

	assert_true(trace_define(buffer, TRACE_RECORD_CODE, &record));
}

static UNUSED void synth_op(struct trace_buffer *buffer, uint32_t id, const char *symbol)
{
	struct record_OP record = { .op = id, .symbol = STR(symbol) };

	assert_true(trace_define(buffer, TRACE_RECORD_OP, &record));
}

static UNUSED void synth_node_type(struct trace_buffer *buffer, uint32_t id, const char *name)
{
	struct record_NODE_TYPE record = { .type = id, .name = STR(name) };

	assert_true(trace_define(buffer, TRACE_RECORD_NODE_TYPE, &record));
}

static UNUSED void synth_function(struct trace_buffer *buffer, uint32_t id, const char *name,
				  unsigned category)
{
	struct record_FUNCTION record = {
		.function = id,
		.category = (uint8_t)category,
		.name = STR(name),
		.library = STR("libcudart.so.13"),
	};

	assert_true(trace_define(buffer, TRACE_RECORD_FUNCTION, &record));
}

static UNUSED void synth_torch_thread(struct trace_buffer *buffer, uint64_t number)
{
	struct record_TORCH_THREAD record = { .thread = buffer->thread, .torch_thread = number };

	assert_true(trace_define(buffer, TRACE_RECORD_TORCH_THREAD, &record));
}

/* Ids that all these programs use. */
enum { USER = 1, LIBRARY = 2, IMPORT = 3 };
enum { ADD = 1, MUL = 2, COPY_ = 3 };
enum { NODE_MUL = 1, NODE_ACCUMULATE = 2 };
enum { LAUNCH = 1, MEMCPY = 2, SYNC = 3, MALLOC = 4, GEMM = 5, QUERY = 6, FREE = 7 };

static UNUSED struct trace_buffer *synth_main(struct synth *synth)
{
	struct trace_buffer *buffer;

	synth_open(synth);
	buffer = synth_thread(synth, 0);
	synth_code(buffer, USER, "/srv/u/train.py", "main");
	synth_code(buffer, LIBRARY, "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py",
		   "Linear.forward");
	synth_code(buffer, IMPORT, "<frozen importlib._bootstrap>", "_find_and_load");
	synth_op(buffer, ADD, "_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE");
	synth_op(buffer, MUL, "_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_");
	synth_op(buffer, COPY_, "aten::copy_");
	synth_node_type(buffer, NODE_MUL, "N5torch8autograd9generated12MulBackward0E");
	synth_node_type(buffer, NODE_ACCUMULATE, "N5torch8autograd14AccumulateGradE");
	synth_function(buffer, LAUNCH, "cudaLaunchKernel", TRACE_CATEGORY_LAUNCH);
	synth_function(buffer, MEMCPY, "cudaMemcpyAsync", TRACE_CATEGORY_COPY);
	synth_function(buffer, SYNC, "cudaStreamSynchronize", TRACE_CATEGORY_SYNC);
	synth_function(buffer, MALLOC, "cudaMalloc", TRACE_CATEGORY_ALLOC_DEVICE);
	synth_function(buffer, FREE, "cudaFree", TRACE_CATEGORY_FREE);
	synth_function(buffer, QUERY, "cudaStreamQuery", TRACE_CATEGORY_QUERY);
	return buffer;
}

/* enter(buffer, time, NAME, field, ...), leave(buffer, time): innermost span; mark: anything else. */
#define enter(buffer, time, NAME, ...) trace_enter(buffer, synth.base + (time), NAME, __VA_ARGS__)
#define mark(buffer, time, NAME, ...)  trace_put(buffer, synth.base + (time), NAME, __VA_ARGS__)
#define leave(buffer, time)            trace_leave(buffer, synth.base + (time), (buffer)->depth - 1, 0)

/* One call from enter to leave. */
#define call(buffer, from, to, NAME, ...)                                                          \
	do {                                                                                       \
		enter(buffer, from, NAME, __VA_ARGS__);                                            \
		leave(buffer, to);                                                                 \
	} while (0)

static UNUSED void synth_read(struct synth *synth)
{
	char message[512];

	synth->reader = trace_open(synth->path, NULL, message, sizeof(message));
	assert_non_null(synth->reader);
	model_load(&synth->model, synth->reader);
}

static UNUSED void synth_close(struct synth *synth)
{
	model_free(&synth->model);
	trace_close(synth->reader);
	file_free(synth->file);
	temp_remove(synth->path);
}

static UNUSED struct ledger process_ledger(struct synth *synth)
{
	return process_ledger_of(&synth->model);
}

static UNUSED struct ledger thread_ledger(struct synth *synth, uint32_t number)
{
	uint32_t index = id_map_get(&synth->model.definitions.thread_ids, number);

	assert_non_null(synth->model.threads[index]);
	return ledger_of(&synth->model.threads[index]->account, &synth->model.calls);
}

/* The row of an operator (by its number in the trace) at a site; NULL: there is none. */
static UNUSED const struct op_row *find_row(struct synth *synth, enum op_kind kind, uint32_t op,
					    uint32_t site)
{
	const struct op_table *table = &synth->model.op_table;
	const struct op_row *found = NULL;

	for (uint32_t i = 1; i < table->count; i++) {
		const struct op_row *row = &table->rows[i];

		if (row->key.kind != kind || row->key.op != op || row->key.site != site)
			continue;
		assert_null(found);
		found = row;
	}
	return found;
}

#define assert_units(value, expected)                                                              \
	assert_int_equal((int64_t)((value) + 0.5), (int64_t)(expected))

/* The lines of a ledger, in units, and that they add up. */
static UNUSED void check_ledger(struct ledger ledger, const double expected[LINE_COUNT],
				double wall)
{
	double sum = 0;

	for (unsigned line = 0; line < LINE_COUNT; line++) {
		if (fabs(ledger.lines[line] - expected[line]) > 0.05)
			print_error("%s: %f, not %f\n", ledger_line_names[line], ledger.lines[line],
				    expected[line]);
		assert_true(fabs(ledger.lines[line] - expected[line]) < 0.05);
		sum += ledger.lines[line];
	}
	assert_units(ledger.wall, wall);
	assert_units(sum, wall);
}

#define EXPECT(...) ((const double[LINE_COUNT]){ __VA_ARGS__ })
