/*
 * nodes.c: records every backward node that autograd's engine evaluates.
 *
 * Engine::evaluate_function is called through libtorch_cpu's PLT, on whatever thread works for the
 * device. C++ exceptions of a node pass through here.
 */
#include "torchhooks/nodes.h"
#include "torchhooks/torch.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

typedef void evaluate_function(void *engine, void *graph_task, void *node, void *inputs,
			       void *queue);

struct node_facts {
	uint64_t torch_thread;
	uint64_t sequence; /* + 1; 0: none */
};

/*
 * torch::autograd::Node. Up to 2.13 it begins with a table pointer and std::enable_shared_from_this,
 * whose first word is the node's own address; later with the table pointer and a count. Then come the
 * sequence number, the topological number, a flag, and the number of the thread that made it.
 */
static struct node_facts node_look(const uint64_t *node)
{
	const uint64_t *fields = node[1] == (uint64_t)node ? node + 3 : node + 2;
	struct node_facts facts = { .torch_thread = fields[3], .sequence = fields[0] + 1 };

	if (fields[1] >> 32 || (fields[2] & 0xff) > 1 || facts.torch_thread >> 32 ||
	    facts.sequence >> 48)
		return (struct node_facts){ 0, 0 };
	return facts;
}

struct node_span {
	bool open;
	uint32_t depth, section_open;
	struct ops_around ops;
};

TARE_HOT static void node_enter(struct node_span *span, const uint64_t *node,
				const void *frame_address)
{
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);
	struct node_facts facts;
	uint32_t type;

	if (!thread)
		return;
	if (tare_unlikely(!torch.node_fired)) {
		torch.node_fired = true;
		tare_note_layer("ops.node", 1, "each backward node, at Engine::evaluate_function");
	}
	tare_close_ops(thread, frame_address);
	sequence_note(thread);
	facts = node_look(node);
	type = node_type(thread, node);
	span->depth = thread->buffer->depth;
	trace_enter(thread->buffer, tare_now(), NODE, type, facts.torch_thread, facts.sequence);
	span->ops = ops_enter(thread);
	span->section_open = thread->section_open;
	thread->section_open =
		1; /* what it calls belongs to the operator that made it, not to a site */
	span->open = true;
	tare_end(thread);
}

TARE_HOT static void node_leave(struct node_span *span)
{
	struct tare_thread *thread;

	if (!span->open || !(thread = tare_begin_leave()))
		return;
	sequence_note(thread);
	ops_leave(thread, span->ops);
	thread->section_open = span->section_open;
	trace_leave(thread->buffer, tare_now(), span->depth, 0);
	tare_end(thread);
}

static evaluate_function evaluate_resolve;
static evaluate_function *evaluate_real = evaluate_resolve;

TARE_EXPORT evaluate_function SYMBOL_EVALUATE;

TARE_HOT void SYMBOL_EVALUATE(void *engine, void *graph_task, void *node, void *inputs, void *queue)
{
	if (!torch.ops_by_tap && !torch.ops_by_record_function) {
		evaluate_real(engine, graph_task, node, inputs, queue);
		return;
	}
	__attribute__((cleanup(node_leave))) struct node_span span = { .open = false };

	node_enter(&span, node, __builtin_frame_address(0));
	evaluate_real(engine, graph_task, node, inputs, queue);
}

TARE_COLD static void evaluate_resolve(void *engine, void *graph_task, void *node, void *inputs,
				       void *queue)
{
	evaluate_function *real = torch_find(STRING(SYMBOL_EVALUATE));

	if (!real)
		return;
	__atomic_store_n(&evaluate_real, real, __ATOMIC_RELAXED);
	real(engine, graph_task, node, inputs, queue);
}
