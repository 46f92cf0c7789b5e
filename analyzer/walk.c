/*
 * walk.c: follows the events of each thread: which spans are open, what each moment belongs to.
 *
 * The hot loop of the analyzer: nothing here allocates but to grow. A thread's time is accounted for at
 * each enter and leave, from the one before: to the slot of the innermost open span. So each moment is
 * in exactly one slot whatever the events say.
 */
#include "analyzer/walk.h"

#include "analyzer/context.h"
#include "analyzer/process_ledger.h"
#include "analyzer/ranges.h"
#include "analyzer/weigh.h"

#define STACK_MAX (1u << 20)

static inline uint32_t narrow(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static inline __attribute__((always_inline)) void
charge(struct model *model, struct model_thread *thread, uint32_t slot, uint64_t now)
{
	/* Times of one thread never go backwards; those of damaged blocks may, against other threads'. */
	uint64_t step = now > thread->last ? now - thread->last : 0;

	thread->last += step;
	thread->account.units[slot] += step;
	model->tree.nodes[thread->stack[thread->top].node].self += step;
}

void thread_charge(struct model *model, struct model_thread *thread, uint32_t slot, uint64_t now)
{
	charge(model, thread, slot, now);
}

static inline void charge_top(struct model *model, struct model_thread *thread, uint64_t now)
{
	charge(model, thread, thread->stack[thread->top].slot, now);
}

/* ---------------------------------------------------------------- spans end */

static inline void child_ended(const struct model_thread *thread, struct span *around, uint64_t now)
{
	around->child_end = now;
	around->child_weight = thread->account.weight[around->slot];
}

/* An operator without a leave is over, since some time. The thread is accounted for up to its last event. */
static void end_loose(struct model *model, struct model_thread *thread, bool known)
{
	struct span *span = &thread->stack[thread->top];

	if (span->flags & SPAN_CONTEXT)
		context_close(model, thread, known);
	else if (span->flags & SPAN_IN_CONTEXT)
		thread->contexts[thread->context_count - 1].open_ops--;
	thread->top--;
	child_ended(thread, &thread->stack[thread->top], thread->last);
}

static inline void end_all_loose(struct model *model, struct model_thread *thread)
{
	while (__builtin_expect(thread->stack[thread->top].flags & SPAN_LOOSE, 0))
		end_loose(model, thread, true);
}

static void end_loose_count(struct model *model, struct model_thread *thread, uint64_t count)
{
	for (; count && thread->stack[thread->top].flags & SPAN_LOOSE; count--)
		end_loose(model, thread, true);
}

static void end_call(struct model *model, struct model_thread *thread, const struct span *span,
		     uint64_t result, uint64_t now)
{
	uint64_t all = now - span->enter, duration = all > span->inner ? all - span->inner : 0;
	uint64_t weight = thread->account.weight[span->slot] - span->weight_mark, raw = duration;
	uint32_t class = span->class;

	duration -= weight >> WEIGHT_BITS < duration ? weight >> WEIGHT_BITS : duration;
	if (class) {
		class = calls_ended(&model->calls, class, duration, span->bytes);
		account_size(&thread->account, LINE_COUNT + class + 1);
		if (class != span->class) {
			/* What events around a gap say took a call may have been accounted for otherwise. */
			uint64_t charged = thread->account.units[span->slot] - span->slot_mark;
			uint64_t moved = raw < charged ? raw : charged;

			thread->account.units[span->slot] -= moved;
			thread->account.units[LINE_COUNT + class] += moved;
			thread->account.weight[span->slot] -= weight;
			thread->account.weight[LINE_COUNT + class] += weight;
		}
		thread->account.calls[LINE_COUNT + class]++;
		process_account(model)->line_calls[calls_counted(&model->calls, class)]++;
	}
	context_call_ended(thread, class, duration, span->kind == TRACE_LAUNCH);
	if (span->kind >= TRACE_COPY)
		waits_ended(model, thread, class, duration, result, now);
}

static void end_special(struct model *model, struct model_thread *thread, const struct span *span,
			uint64_t result, uint64_t now)
{
	if (span->flags & SPAN_CALL)
		end_call(model, thread, span, result, now);
	if (span->kind == TRACE_TARE)
		weigh_tare(thread, now - span->enter);
	if (span->flags & SPAN_LOOPS)
		loops_left(model, thread, now);
	if (span->flags & SPAN_IMPORT)
		process_imported(model, thread, span->enter, now);
	if (span->flags & SPAN_CONTEXT)
		context_close(model, thread, true);
	else if (span->flags & SPAN_IN_CONTEXT)
		thread->contexts[thread->context_count - 1].open_ops--;
}

static inline void leave(struct model *model, struct model_thread *thread, uint64_t result,
			 uint64_t now)
{
	if (__builtin_expect(thread->unseen, 0)) {
		thread->unseen--;
		return;
	}
	end_all_loose(model, thread);
	charge_top(model, thread, now);
	uint32_t outside = weigh_leave(model, thread);
	if (__builtin_expect(!thread->top, 0)) {
		if (!thread->base)
			model->stray_leaves++;
		else if (!--thread->base && thread == model->main)
			process_program_ended(model, thread->first, now);
		child_ended(thread, &thread->stack[0], now);
		return;
	}
	const struct span *span = &thread->stack[thread->top];
	if (span->flags)
		end_special(model, thread, span, result, now);
	thread->top--;
	thread->spans--;
	struct span *around = &thread->stack[thread->top];
	uint64_t duration = now - span->enter;
	/* Where both are of one slot, so are both durations. */
	around->inner += span->slot == around->slot ? 0 : duration;
	if (span->flags & SPAN_QUIET)
		around->child_end += duration;
	else
		child_ended(thread, around, now);
	thread->account.weight[around->slot] += outside;
	if (__builtin_expect(result && span->kind == TRACE_FRAME, 0))
		raises_add(model, thread, span, now);
	if (__builtin_expect(!thread->top, 0)) {
		if (thread == model->main && span->kind == TRACE_FRAME && !thread->base)
			process_program_ended(model, span->enter, now);
		if (thread == model->leader)
			process_leader_idle(model, now);
	}
}

/* The innermost span is gone; since when is not known. */
static void end_unknown(struct model *model, struct model_thread *thread, uint64_t now)
{
	struct span *span = &thread->stack[thread->top];

	if (span->flags & SPAN_LOOSE) {
		end_loose(model, thread, false);
		return;
	}
	if (span->flags & SPAN_LOOPS)
		loops_left(model, thread, now);
	if (span->flags & SPAN_IMPORT)
		process_imported(model, thread, span->enter, now);
	if (span->flags & SPAN_CONTEXT)
		context_close(model, thread, false);
	else if (span->flags & SPAN_IN_CONTEXT)
		thread->contexts[thread->context_count - 1].open_ops--;
	thread->top--;
	thread->spans--;
	child_ended(thread, &thread->stack[thread->top], now);
}

static uint64_t open_count(const struct model_thread *thread)
{
	return (uint64_t)thread->base + thread->spans + thread->unseen;
}

/* From here on `depth` spans are open. What happened since the last event is not known. */
static void resync(struct model *model, struct model_thread *thread, uint64_t depth, uint64_t now)
{
	charge(model, thread, LINE_other, now);
	if (open_count(thread) < depth) {
		/* Enters are missing: nothing is known of what is around. */
		while (thread->top)
			end_unknown(model, thread, now);
		thread->unseen = 0;
		thread->base = narrow(depth);
		return;
	}
	uint64_t gone = open_count(thread) - depth;
	uint64_t unseen = gone < thread->unseen ? gone : thread->unseen;

	thread->unseen -= (uint32_t)unseen;
	for (gone -= unseen; gone && thread->top;
	     gone -= !(thread->stack[thread->top + 1].flags & SPAN_LOOSE))
		end_unknown(model, thread, now);
	thread->base -= (uint32_t)(gone < thread->base ? gone : thread->base);
	if (!thread->top && thread == model->leader)
		process_leader_idle(model, now);
}

/* ---------------------------------------------------------------- spans begin */

/* The node of a span that begins now, by the guess that siblings follow each other as the last time. */
static inline uint32_t find_node(struct model *model, struct span *around, unsigned kind,
				 uint32_t id, uint32_t code, uint32_t site)
{
	struct tree_node *nodes = model->tree.nodes;
	uint32_t *guess = around->last_child ? &nodes[around->last_child].successor :
					       &nodes[around->node].first;
	uint32_t node = *guess;

	if (__builtin_expect(!tree_node_is(&nodes[node], around->node, kind, id, code, site), 0)) {
		uint32_t index = definitions_index(&model->definitions, kind, id);

		node = call_tree_find(&model->tree, around->node, kind, id, code, site, index,
				      kind == TRACE_FRAME &&
					      model->definitions.codes[index].importing);
		nodes = model->tree.nodes;
		guess = around->last_child ? &nodes[around->last_child].successor :
					     &nodes[around->node].first;
		*guess = node;
	}
	around->last_child = node;
	node = nodes[node].target;
	nodes[node].count++;
	return node;
}

static uint32_t index_of(const struct model *model, uint32_t node, unsigned kind, uint32_t id)
{
	return __builtin_expect(node > TREE_OTHER, 1) ?
		       model->tree.nodes[node].index :
		       definitions_index(&model->definitions, kind, id);
}

/*
 * The place of a new innermost span, or NULL where the stack is full. Begins to fill it: it lies in the
 * frame that is innermost now.
 */
static inline struct span *push(struct model *model, struct model_thread *thread, unsigned kind,
				uint32_t node, uint32_t slot, unsigned flags, uint64_t now)
{
	if (__builtin_expect(thread->top + 1 >= thread->room, 0))
		memory_grow(thread->stack, thread->top + 1, thread->room);
	struct span *around = &thread->stack[thread->top++];
	struct span *span = around + 1;
	span->enter = span->child_end = now;
	span->child_weight = thread->account.weight[slot];
	span->rate = thread->rate;
	span->apart = thread->apart;
	add_weight(thread, slot, weight_inside(&model->weights.rates[thread->rate], thread->apart));
	span->inner = 0;
	span->node = node;
	span->last_child = 0;
	span->slot = slot;
	span->class = 0;
	span->frame = around->frame;
	span->kind = (uint8_t)kind;
	span->flags = (uint8_t)flags;
	thread->spans += !(flags & SPAN_LOOSE);
	model->span_count++;
	return span;
}

/* A full stack: counts a span instead. */
static inline bool is_full(struct model_thread *thread)
{
	if (__builtin_expect(thread->top + 1 < STACK_MAX && !thread->unseen, 1))
		return false;
	thread->unseen++;
	return true;
}

static inline struct span *frame_of(struct model_thread *thread)
{
	return &thread->stack[thread->stack[thread->top].frame];
}

/* Notes where the innermost frame is, and returns that. 0 in the trace: where it was. */
static inline uint32_t note_site(struct model *model, struct model_thread *thread,
				 struct span *frame, uint64_t site, enum loop_event what,
				 uint64_t now)
{
	if (site) {
		frame->site = narrow(site);
		if (frame->two_calls)
			frame->site =
				code_call_site(&model->definitions.codes[frame->code], frame->site);
		if (frame->loops)
			loops_event(model, thread, frame, frame->site, what, now);
		return frame->site;
	}
	return 0;
}

static inline void enter_frame(struct model *model, struct model_thread *thread,
			       const struct trace_event *event)
{
	if (is_full(thread))
		return;
	charge_top(model, thread, event->time);
	struct span *caller = frame_of(thread);
	uint32_t id = narrow(event->fields[0]), distance = narrow(event->fields[2]) >> 1;
	uint32_t site =
		note_site(model, thread, caller, event->fields[1],
			  distance == model->loops.direct ? LOOP_EVENT_DIRECT : LOOP_EVENT_OTHER,
			  event->time);
	/* What an import runs is told apart by function alone: there are many lines, each run once. */
	uint32_t node = find_node(model, &thread->stack[thread->top], TRACE_FRAME, id, caller->code,
				  caller->importing ? 0 : site);
	uint32_t code = index_of(model, node, TRACE_FRAME, id);
	const struct def_code *definition = &model->definitions.codes[code];
	weigh_frame(model, thread, definition, distance);
	struct span *span = push(model, thread, TRACE_FRAME, node,
				 definition->user ? LINE_python_user : LINE_python_library, 0,
				 event->time);

	caller = &thread->stack[span->frame];
	span->user_code = caller->user ? caller->code : caller->user_code;
	span->user_site = caller->user ? caller->site : caller->user_site;
	span->code = code;
	span->site = 0;
	/* Imports happen once, and are no loop's work. */
	span->loops = caller->importing || definition->importing ?
			      NULL :
			      code_find_loops(&model->definitions.codes[code]);
	span->two_calls = definition->python == 0x030b;
	span->thrown = event->fields[2] & 1;
	span->loop_last = 0;
	span->run_first = thread->run_count;
	span->user = definition->user;
	span->importing = caller->importing || definition->importing;
	span->step = definition->step;
	if (__builtin_expect(span->step | caller->step, 0))
		loops_step(model, thread, caller, code);
	if (definition->importing && !caller->importing) {
		span->flags |= SPAN_IMPORT;
		process_import(model, thread, event->time);
	}
	span->frame = thread->top;
}

/*
 * A thread that no Python code runs on, such as autograd's, gives the GIL back once and then works: that
 * section is its whole life, and no work.
 */
static bool is_native_life(const struct model *model, const struct model_thread *thread,
			   uint64_t site)
{
	return !thread->top && !thread->base && !site &&
	       (thread != model->main || !definitions_layer_off(&model->definitions, "frames"));
}

static void enter_section(struct model *model, struct model_thread *thread,
			  const struct trace_event *event)
{
	if (is_full(thread))
		return;
	charge_top(model, thread, event->time);
	struct span *frame = frame_of(thread);
	uint32_t site =
		note_site(model, thread, frame, event->fields[0], LOOP_EVENT_OTHER, event->time);
	uint32_t node =
		find_node(model, &thread->stack[thread->top], TRACE_SECTION, 0, frame->code, site);
	weigh_enter(model, thread, node, event->code);
	bool life = is_native_life(model, thread, site);
	unsigned flags = life ? 0 : context_section(model, thread, node, event->time);

	push(model, thread, TRACE_SECTION, node, life ? LINE_other : LINE_framework, flags,
	     event->time);
}

static void enter_operator(struct model *model, struct model_thread *thread,
			   const struct trace_event *event, uint64_t site_field, unsigned flags)
{
	if (flags & SPAN_LOOSE ? thread->unseen || thread->top + 1 >= STACK_MAX : is_full(thread))
		return;
	charge_top(model, thread, event->time);
	struct span *frame = frame_of(thread);
	uint32_t id = narrow(event->fields[0]);
	uint32_t site = note_site(model, thread, frame, site_field, LOOP_EVENT_OTHER, event->time);
	uint32_t node =
		find_node(model, &thread->stack[thread->top], event->code, id, frame->code, site);
	weigh_enter(model, thread, node, event->code);
	uint32_t op = index_of(model, node, event->code, id);

	if (thread != model->leader && !model->launches_lead)
		process_lead(model, thread, false, event->time);
	flags |= context_operator(model, thread, node, op, flags & SPAN_LOOSE, event->time);
	push(model, thread, event->code, node, LINE_framework, flags, event->time);
}

static void enter_node(struct model *model, struct model_thread *thread,
		       const struct trace_event *event)
{
	if (is_full(thread))
		return;
	charge_top(model, thread, event->time);
	uint32_t id = narrow(event->fields[0]);
	uint32_t node = find_node(model, &thread->stack[thread->top], TRACE_NODE, id, 0, 0);
	weigh_enter(model, thread, node, event->code);
	uint32_t type = index_of(model, node, TRACE_NODE, id);
	uint32_t maker = id_map_get(&model->definitions.torch_threads, event->fields[1]);

	if (maker && model->threads[maker])
		process_join(model, model->threads[maker], thread, event->time);
	unsigned flags =
		context_node(model, thread, node, type, maker, event->fields[2], event->time);
	push(model, thread, TRACE_NODE, node, LINE_framework, flags, event->time);
}

static void enter_call(struct model *model, struct model_thread *thread,
		       const struct trace_event *event)
{
	bool copy = event->code == TRACE_COPY;

	if (is_full(thread))
		return;
	charge_top(model, thread, event->time);
	struct span *around = &thread->stack[thread->top], *frame = &thread->stack[around->frame];
	uint32_t id = narrow(event->fields[0]);
	uint32_t site =
		note_site(model, thread, frame, event->fields[1], LOOP_EVENT_OTHER, event->time);
	uint32_t node = find_node(model, around, event->code, id, frame->code, site);
	weigh_enter(model, thread, node, event->code);
	uint32_t function = index_of(model, node, event->code, id);
	unsigned category = model->definitions.functions[function].category;
	uint32_t class = 0, slot = around->slot, flags = SPAN_CALL;
	/* Of a library's own runtime, and to the driver: seen by CUPTI, without details. */
	bool launch = event->code == TRACE_LAUNCH ||
		      (event->code == TRACE_CALL && category == TRACE_CATEGORY_LAUNCH);

	if (around->flags & SPAN_LIBRARY) {
		flags |= SPAN_LIBRARY;
	} else if (calls_have_line(category)) {
		class = calls_class(&model->calls, function, copy, event->fields[3],
				    event->fields[4]);
		slot = LINE_COUNT + class;
		account_size(&thread->account, slot + 1);
		if (category == TRACE_CATEGORY_LIBRARY)
			flags |= SPAN_LIBRARY;
	}
	if (launch) {
		thread->launches++;
		if (thread != model->leader || !model->launches_lead)
			process_lead(model, thread, true, event->time);
	}
	flags |= context_call(model, thread, node, function, event->time);
	if (event->code == TRACE_LAUNCH || category == TRACE_CATEGORY_CAPTURE)
		graph_launched(model, thread, function, event->fields[2]);
	struct span *span = push(model, thread, launch ? TRACE_LAUNCH : event->code, node, slot,
				 flags, event->time);
	span->class = class;
	span->slot_mark = thread->account.units[slot];
	span->weight_mark = span->child_weight;
	span->bytes = copy ? event->fields[4] : 0;
	if (event->code != TRACE_CALL || launch || category == TRACE_CATEGORY_LIBRARY)
		waits_called(model, thread, event, category, function);
}

/* CALLBACK, GIL, TARE, and spans that only a later version knows. */
static void enter_plain(struct model *model, struct model_thread *thread,
			const struct trace_event *event, uint32_t slot, unsigned flags)
{
	if (is_full(thread))
		return;
	charge_top(model, thread, event->time);
	uint32_t id = event->code == TRACE_TARE ? narrow(event->fields[0]) : 0;
	uint32_t node = find_node(model, &thread->stack[thread->top], event->code, id, 0, 0);
	weigh_enter(model, thread, node, event->code);

	push(model, thread, event->code, node, slot, flags, event->time);
}

/* ---------------------------------------------------------------- marks */

static void mark_code(struct model *model, struct model_thread *thread, uint64_t id)
{
	struct span *frame = frame_of(thread);

	frame->code = id_map_get(&model->definitions.code_ids, id);
	frame->user = model->definitions.codes[frame->code].user;
	/* Offsets are the frame's own again, or of one in it that was not seen. */
	if (frame->kind == TRACE_FRAME) {
		bool own = frame->code == model->tree.nodes[frame->node].index;

		frame->loops = own && !frame->importing ?
				       model->definitions.codes[frame->code].loops :
				       NULL;
	}
}

static void other_event(struct model *model, struct model_thread *thread,
			struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_event_desc *description = trace_event_described(reader, event->code);

	model->unknown_events++;
	if (description && description->kind == TRACE_KIND_SPAN)
		enter_plain(model, thread, event, thread->stack[thread->top].slot, 0);
}

static inline void walk_event(struct model *model, struct model_thread *thread,
			      struct trace_reader *reader, const struct trace_event *event)
{
	switch (event->code) {
	case TRACE_LEAVE: leave(model, thread, event->fields[0], event->time); break;
	case TRACE_LEAVE_TO: resync(model, thread, event->fields[0], event->time); break;
	case TRACE_FRAME: enter_frame(model, thread, event); break;
	case TRACE_SECTION: enter_section(model, thread, event); break;
	case TRACE_CALLBACK: enter_plain(model, thread, event, LINE_framework, 0); break;
	case TRACE_GIL: enter_plain(model, thread, event, LINE_gil, SPAN_QUIET); break;
	case TRACE_OP:
		if (event->fields[1])
			end_loose_count(model, thread, event->fields[1]);
		enter_operator(model, thread, event, event->fields[2], SPAN_LOOSE);
		break;
	case TRACE_OP_OVER:
		weigh_mark(model, thread);
		end_loose_count(model, thread, event->fields[0]);
		break;
	case TRACE_OP_SPAN: enter_operator(model, thread, event, event->fields[1], 0); break;
	case TRACE_NODE: enter_node(model, thread, event); break;
	case TRACE_RANGE_BEGIN: range_begin(model, thread, event->fields[0], event->time); break;
	case TRACE_RANGE_END: range_end(model, thread, event->time); break;
	case TRACE_AT:
		weigh_mark(model, thread);
		mark_code(model, thread, event->fields[0]);
		break;
	case TRACE_MADE:
		weigh_mark(model, thread);
		context_made(model, thread, event->fields[1], event->fields[0]);
		break;
	case TRACE_TARE: enter_plain(model, thread, event, LINE_tare, SPAN_QUIET); break;
	case TRACE_CALL:
	case TRACE_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_MEMORY:
	case TRACE_SYNC: enter_call(model, thread, event); break;
	case TRACE_RESULT:
		weigh_mark(model, thread);
		waits_result(model, thread, event->fields[0]);
		break;
	case TRACE_DEVICE: waits_device(thread, event->fields[0]); break;
	case TRACE_STACK: waits_stack(thread, event->fields[0]); break;
	case TRACE_CORRELATION:
		weigh_mark(model, thread);
		device_called(model, thread, event->fields[0], event->time);
		break;
	default: other_event(model, thread, reader, event); break;
	}
}

/* ---------------------------------------------------------------- threads */

static bool is_main(const struct model *model, uint32_t index)
{
	return model->definitions.threads[index].tid == model->main_tid;
}

static struct model_thread *start_thread(struct model *model, uint32_t index,
					 const struct trace_batch *batch)
{
	struct model_thread *thread = memory_zero(1, sizeof(*thread));
	uint64_t now = batch->events[0].time;

	thread->index = index;
	thread->number = batch->thread;
	memory_grow(thread->stack, 0, thread->room);
	thread->stack[0] = (struct span){
		.enter = now,
		.child_end = now,
		.node = TREE_ROOT,
		.slot = LINE_other,
		.kind = TREE_KIND_NONE,
	};
	thread->base = batch->depth;
	thread->first = thread->last = now;
	thread->started = true;
	account_size(&thread->account, LINE_COUNT);
	if (!model->leader) {
		model->leader = thread;
		account_size(&model->process, LINE_COUNT);
		if (now > model->open)
			model->process.units[LINE_other] += now - model->open;
	}
	if (!model->main || (!is_main(model, model->main->index) && is_main(model, index)))
		model->main = thread;
	return thread;
}

static inline void note_last(struct model *model, const struct trace_batch *batch)
{
	uint64_t last = batch->events[batch->count - 1].time;

	if (last > model->last_event)
		model->last_event = last;
}

void walk_batch(struct model *model, struct trace_reader *reader, const struct trace_batch *batch)
{
	uint32_t index = id_map_get(&model->definitions.thread_ids, batch->thread);
	struct model_thread *thread;

	if (!batch->count)
		return;
	if (__builtin_expect(!model_time_is_sane(model, batch->events[batch->count - 1].time) ||
				     !model_time_is_sane(model, batch->events[0].time),
			     0)) {
		model->resyncs++;
		return;
	}
	if (__builtin_expect(index && definitions_are_others(&model->definitions, index), 0)) {
		device_batch(model, batch);
		note_last(model, batch);
		return;
	}
	if (__builtin_expect(!index || !model->threads[index], 0)) {
		index = definitions_thread(&model->definitions, batch->thread);
		memory_grow(model->threads, index, model->thread_room);
		if (!model->threads[index])
			model->threads[index] = start_thread(model, index, batch);
	}
	thread = model->threads[index];

	uint64_t first = batch->events[0].time;
	if (__builtin_expect(thread->joined != NULL, 0))
		process_part(model, thread, first);
	if (__builtin_expect(batch->block_start, 0) &&
	    (batch->gap || batch->depth != open_count(thread))) {
		model->resyncs++;
		context_lost(thread, first);
		resync(model, thread, batch->depth, first);
	}
	uint64_t before = weigh_others(model, thread, first);
	for (uint32_t i = 0; i < batch->count; i++)
		walk_event(model, thread, reader, &batch->events[i]);
	thread->events += batch->count;
	weigh_batch(model, thread, before);
	note_last(model, batch);
}

void walk_finish(struct model *model)
{
	uint64_t end = model->end;

	process_finish(model, end);
	waits_finish(model);
	loops_finish(model, end);
	findings_finish(model);
	account_size(&model->process, LINE_COUNT);
}
