/* context.c: see context.h. */
#include "analyzer/context.h"

#include <string.h>

#include "analyzer/memory.h"
#include "analyzer/process_ledger.h"

#define ROW_THREADS_MAX 64u /* threads that have rows of their own */

static const unsigned watched_lines[2] = { LINE_framework, LINE_gil };

/* What the thread itself has used so far of a watched line, without tare's weight, of which it has the scale. */
static uint64_t used(const struct model_thread *thread, unsigned i)
{
	unsigned line = watched_lines[i];
	uint64_t units = thread->account.units[line] - thread->foreign[i];

	return (units << WEIGHT_BITS) - (thread->account.weight[line] - thread->foreign_weight[i]);
}

static struct op_context *innermost(struct model_thread *thread)
{
	return thread->context_count ? &thread->contexts[thread->context_count - 1] : NULL;
}

/*
 * Whether what happens now belongs to the innermost context: an operator of it is open, or no frame has
 * been entered since it began.
 */
static bool inside(const struct model_thread *thread, const struct op_context *context)
{
	return context && (context->open_ops || context->frame == thread->stack[thread->top].frame);
}

static void start_segment(const struct model_thread *thread, struct op_context *context,
			  uint64_t now)
{
	context->start = now;
	context->launches = 0;
	context->call_count = 0;
	for (unsigned i = 0; i < 2; i++) {
		context->marks[i] = used(thread, i);
		context->inner[i] = 0;
	}
}

/* Since the last child of the frame ended. Not where that, or another child, is among lost events. */
static uint64_t python_before(const struct model_thread *thread, const struct span *frame,
			      uint64_t now)
{
	if (frame->child_end <= thread->lost_until)
		return OP_UNKNOWN;
	uint64_t python = now - frame->child_end;
	uint64_t weight = (thread->account.weight[frame->slot] - frame->child_weight) >>
			  WEIGHT_BITS;

	return python > weight ? python - weight : 0;
}

static struct op_context *begin(struct model_thread *thread, enum op_kind kind, uint32_t op,
				uint32_t node, uint64_t now)
{
	const struct span *around = &thread->stack[thread->top],
			  *frame = &thread->stack[around->frame];
	struct op_context *context;

	memory_grow(thread->contexts, thread->context_count, thread->context_room);
	context = &thread->contexts[thread->context_count++];
	context->span = thread->top + 1;
	context->frame = around->frame;
	context->open_ops = 0;
	context->has_op = kind != OP_KIND_SECTION;
	context->known = true;
	context->open_end = false;
	context->node = node;
	context->key = (struct op_key){
		.kind = kind,
		.op = op,
		.code = frame->code,
		.site = frame->site,
		.user_code = frame->user ? frame->code : frame->user_code,
		.user_site = frame->user ? frame->site : frame->user_site,
		.thread = thread->index <= ROW_THREADS_MAX ? thread->index : 0,
	};
	context->python = around->kind == TRACE_FRAME ? python_before(thread, around, now) :
							OP_UNKNOWN;
	start_segment(thread, context, now);
	return context;
}

/* The row of a context as it is now. */
static uint32_t row_of(struct model *model, const struct op_context *context)
{
	struct tree_node *node = &model->tree.nodes[context->node];

	if (node->row &&
	    !memcmp(&model->op_table.rows[node->row].key, &context->key, sizeof(context->key)))
		return node->row;
	return node->row = op_table_row(&model->op_table, &context->key);
}

static void end_segment(struct model *model, struct model_thread *thread,
			struct op_context *context)
{
	struct op_context *outer = context > thread->contexts ? context - 1 : NULL;
	uint64_t took[2];

	for (unsigned i = 0; i < 2; i++) {
		uint64_t all = used(thread, i) - context->marks[i];

		int64_t own = (int64_t)(all - context->inner[i]);

		took[i] = own > 0 ? (uint64_t)own >> WEIGHT_BITS : 0;
		if (outer)
			outer->inner[i] += all;
	}
	const struct op_sample sample = {
		.python = context->python,
		.framework = context->open_end ? OP_UNKNOWN : took[0],
		.gil = took[1],
		.calls = context->calls,
		.call_count = context->call_count,
		.launches = context->launches,
		.time = context->start,
		.known = context->known,
	};
	uint32_t row = row_of(model, context);

	bool counts = op_table_add(&model->op_table, row, &sample);

	loops_operator(model, thread, row, counts ? &sample : NULL);
}

/* The program is past its start-up when its own code first leads to an operator. */
static void note_startup(struct model *model, const struct model_thread *thread,
			 const struct op_context *context, uint64_t now)
{
	if (model->startup_ended || !context->key.user_code ||
	    thread->stack[thread->stack[thread->top].frame].importing)
		return;
	model->startup_ended = true;
	model->startup_end = now;
	process_settle(model, now);
	account_copy(&model->startup, &model->process);
	loops_startup(model, now);
}

unsigned context_section(struct model *model, struct model_thread *thread, uint32_t node,
			 uint64_t now)
{
	(void)model;
	struct op_context *context = innermost(thread);

	if (inside(thread, context)) {
		context->open_end = false;
		return 0;
	}
	begin(thread, OP_KIND_SECTION, 0, node, now);
	return SPAN_CONTEXT;
}

unsigned context_operator(struct model *model, struct model_thread *thread, uint32_t node,
			  uint32_t op, bool loose, uint64_t now)
{
	struct op_context *context = innermost(thread);

	thread->ops++;
	if (!inside(thread, context)) {
		context = begin(thread, OP_KIND_OPERATOR, op, node, now);
		context->open_ops = 1;
		context->open_end = loose;
		note_startup(model, thread, context, now);
		return SPAN_CONTEXT;
	}
	if (!context->open_ops++ && context->key.kind != OP_KIND_NODE) {
		if (context->has_op && context->key.kind == OP_KIND_OPERATOR) {
			end_segment(model, thread, context);
			start_segment(thread, context, now);
			context->python = 0;
		}
		context->has_op = true;
		context->key.kind = OP_KIND_OPERATOR;
		context->key.op = op;
		context->node = node;
		note_startup(model, thread, context, now);
	}
	return SPAN_IN_CONTEXT;
}

unsigned context_node(struct model *model, struct model_thread *thread, uint32_t node,
		      uint32_t type, uint32_t torch_thread, uint64_t sequence, uint64_t now)
{
	struct op_context *context = innermost(thread);
	struct model_thread *maker = torch_thread ? model->threads[torch_thread] : NULL;
	uint32_t forward = maker && sequence ? autograd_find(&maker->autograd, sequence - 1) : 0;

	/* Below an open operator it is part of that. */
	if (context && context->open_ops)
		return 0;
	context = begin(thread, OP_KIND_NODE, type, node, now);
	context->python = OP_UNKNOWN;
	const struct op_key *made_by = &model->op_table.rows[forward].key;
	context->key.code = made_by->code;
	context->key.site = made_by->site;
	context->key.user_code = made_by->user_code;
	context->key.user_site = made_by->user_site;
	return SPAN_CONTEXT;
}

unsigned context_call(struct model *model, struct model_thread *thread, uint32_t node,
		      uint32_t function, uint64_t now)
{
	struct op_context *context = innermost(thread);

	(void)model;
	if (!inside(thread, context)) {
		begin(thread, OP_KIND_CALL, function, node, now);
		return SPAN_CONTEXT;
	}
	context->open_end = false;
	/* A section says more by the first thing called in it than by nothing. */
	if (!context->has_op && context->key.kind == OP_KIND_SECTION) {
		context->key.kind = OP_KIND_CALL;
		context->key.op = function;
		context->node = node;
	}
	return 0;
}

void context_call_ended(struct model_thread *thread, uint32_t class, uint64_t duration, bool launch)
{
	struct op_context *context = innermost(thread);

	if (!context)
		return;
	context->launches += launch;
	if (!class)
		return;
	for (uint32_t i = 0; i < context->call_count; i++)
		if (context->calls[i].class == class) {
			context->calls[i].count++;
			context->calls[i].sum += duration;
			return;
		}
	memory_grow(context->calls, context->call_count, context->call_room);
	context->calls[context->call_count++] = (struct op_call){ class, 1, duration };
}

void context_close(struct model *model, struct model_thread *thread, bool known)
{
	struct op_context *context = innermost(thread);

	context->known &= known;
	end_segment(model, thread, context);
	thread->context_count--;
}

void context_lost(struct model_thread *thread, uint64_t now)
{
	thread->lost_until = now;
	for (uint32_t i = 0; i < thread->context_count; i++)
		thread->contexts[i].known = false;
}

void context_made(struct model *model, struct model_thread *thread, uint64_t sequence,
		  uint64_t count)
{
	const struct op_context *context = innermost(thread);

	if (context && context->key.kind != OP_KIND_NODE) {
		uint32_t row = row_of(model, context);

		model->op_table.rows[row].made++;
		autograd_add(&thread->autograd, sequence, count, row);
	}
}

uint32_t context_row(struct model *model, struct model_thread *thread)
{
	const struct op_context *context = innermost(thread);

	return context ? row_of(model, context) : 0;
}
