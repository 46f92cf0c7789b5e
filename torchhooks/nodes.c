/*
 * nodes.c: records every backward node that autograd's engine evaluates.
 *
 * Engine::evaluate_function is called through libtorch_cpu's PLT, on whatever thread works for the
 * device. C++ exceptions of a node pass through here.
 */
#include <string.h>

#include "torchhooks/id_cache.h"
#include "torchhooks/safe_read.h"
#include "torchhooks/torch.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

#define TYPES_BITS     11u
#define TYPE_NAME_ROOM 1024u

typedef void evaluate_function(void *engine, void *graph_task, void *node, void *inputs,
			       void *queue);

static struct id_entry type_entries[1u << TYPES_BITS];
static uint32_t last_type;
static struct id_cache types = {
	.bits = TYPES_BITS,
	.entries = type_entries,
	.last_id = &last_type,
};

/* The class's name, by the type_info before its table of virtual functions. Itanium C++ ABI, 2.5.2. */
TARE_COLD static uint32_t learn_type(struct tare_thread *thread, uint64_t vtable)
{
	struct id_found found = id_cache_find(&types, vtable);
	char name[TYPE_NAME_ROOM];
	uint32_t depth = thread->buffer->depth;
	uint64_t type_info, text;
	struct record_NODE_TYPE record;

	trace_enter(thread->buffer, tare_now(), TARE, 2);
	if (!safe_read_word(vtable - 8, &type_info) || !safe_read_word(type_info + 8, &text) ||
	    !safe_read_text(text, name, sizeof(name)))
		strcpy(name, "?");
	record.type = id_cache_id(&types, found);
	/* '*' marks names that are compared by address. */
	record.name.data = name[0] == '*' ? name + 1 : name;
	record.name.length = (uint32_t)strlen(record.name.data);
	trace_define(thread->buffer, TRACE_RECORD_NODE_TYPE, &record);
	id_cache_keep(&types, vtable, record.type, 0);
	trace_leave(thread->buffer, tare_now(), depth, 0);
	return record.type;
}

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

static void node_enter(struct node_span *span, const uint64_t *node, const void *frame_address)
{
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);
	struct id_found type;
	struct node_facts facts;

	if (!thread)
		return;
	if (tare_unlikely(!torch.node_fired)) {
		torch.node_fired = true;
		tare_note_layer("ops.node", 1, "each backward node, at Engine::evaluate_function");
	}
	tare_close_ops(thread, frame_address);
	sequence_note(thread);
	facts = node_look(node);
	type = id_cache_find(&types, node[0]);
	if (tare_unlikely(!type.defined))
		type.id = learn_type(thread, node[0]);
	span->depth = thread->buffer->depth;
	trace_enter(thread->buffer, tare_now(), NODE, type.id, facts.torch_thread, facts.sequence);
	span->ops = ops_enter(thread);
	span->section_open = thread->section_open;
	thread->section_open =
		1; /* what it calls belongs to the operator that made it, not to a site */
	span->open = true;
	tare_end(thread);
}

static void node_leave(struct node_span *span)
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

void SYMBOL_EVALUATE(void *engine, void *graph_task, void *node, void *inputs, void *queue)
{
	__attribute__((cleanup(node_leave))) struct node_span span = { .open = false };

	if (torch.ops_by_tap || torch.ops_by_record_function)
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
