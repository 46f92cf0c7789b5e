/* waits.c: see waits.h. */
#include "analyzer/waits.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"

#define RANGES_MAX  (1u << 16)
#define ANSWERS_MAX 256u
#define SMALL_BYTES 16 /* a scalar or a size */
/* Of so much pageable memory a copy to the device returns before the device has it. */
#define STAGED_BYTES (64u << 10)

enum { COPY_H2H, COPY_H2D, COPY_D2H, COPY_D2D, COPY_BY_ADDRESS };

/* ---------------------------------------------------------------- memory */

/* A pool, or one thread after the other, is one row. */
static uint32_t thread_group(const struct model *model, uint32_t index)
{
	const struct def_thread *threads = model->definitions.threads;

	if (threads[index].tid == model->main_tid)
		return index;
	for (uint32_t i = 1; i < index; i++)
		if (threads[i].tid != model->main_tid &&
		    !strcmp(threads[i].name, threads[index].name))
			return i;
	return index;
}

void waits_start(struct model *model)
{
	struct waits *waits = &model->waits;

	waits->designs = memory_zero(model->definitions.code_count, 1);
	waits->thread_count = model->definitions.thread_count;
	waits->groups = memory_zero(model->definitions.thread_count, sizeof(*waits->groups));
	for (uint32_t i = 1; i < model->definitions.thread_count; i++)
		waits->groups[i] = thread_group(model, i);
	waits->all_memory = !definitions_layer_off(&model->definitions, "cuda") &&
			    !model->definitions.lost_events;
}

void waits_free(struct waits *waits)
{
	free(waits->ranges);
	free(waits->answers);
	free(waits->groups);
	free(waits->designs);
	*waits = (struct waits){ 0 };
}

/* The first range that ends behind `address`. */
static uint32_t range_at(const struct waits *waits, uint64_t address)
{
	uint32_t low = 0, high = waits->range_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (waits->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget_range(struct waits *waits, uint64_t start, uint64_t end)
{
	uint32_t first = range_at(waits, start), last = first;

	while (last < waits->range_count && waits->ranges[last].start < end)
		last++;
	if (last == first)
		return;
	memmove(&waits->ranges[first], &waits->ranges[last],
		(waits->range_count - last) * sizeof(*waits->ranges));
	waits->range_count -= last - first;
}

static void note_range(struct waits *waits, uint64_t start, uint64_t bytes, enum memory_kind kind)
{
	uint64_t end = start + bytes;
	uint32_t at;

	if (!start || end <= start)
		return;
	forget_range(waits, start, end);
	if (waits->range_count >= RANGES_MAX) {
		waits->all_memory = false;
		return;
	}
	memory_grow(waits->ranges, waits->range_count, waits->range_room);
	at = range_at(waits, start);
	memmove(&waits->ranges[at + 1], &waits->ranges[at],
		(waits->range_count - at) * sizeof(*waits->ranges));
	waits->ranges[at] = (struct memory_range){ start, end, (uint8_t)kind };
	waits->range_count++;
}

static enum memory_kind memory_at(const struct waits *waits, uint64_t address)
{
	uint32_t at = range_at(waits, address);

	if (at < waits->range_count && waits->ranges[at].start <= address)
		return (enum memory_kind)waits->ranges[at].kind;
	/* What the program was told by CUDA itself, of memory that another interface may have made. */
	for (uint32_t i = 0; i < waits->answer_room; i++)
		if (waits->answers[i].start == address && address)
			return (enum memory_kind)waits->answers[i].kind;
	return waits->all_memory && address ? MEMORY_PAGEABLE : MEMORY_UNKNOWN;
}

static void note_answer(struct waits *waits, uint64_t address, uint64_t type)
{
	static const uint8_t kinds[] = { MEMORY_PAGEABLE, MEMORY_PINNED, MEMORY_DEVICE,
					 MEMORY_MANAGED };
	uint32_t at = 0;

	if (!waits->answers) {
		waits->answers = memory_zero(ANSWERS_MAX, sizeof(*waits->answers));
		waits->answer_room = ANSWERS_MAX;
	}
	while (at < waits->answer_count && at < ANSWERS_MAX && waits->answers[at].start != address)
		at++;
	if (at == waits->answer_count || at == ANSWERS_MAX)
		at = waits->answer_count++ % ANSWERS_MAX;
	waits->answers[at] = (struct memory_range){
		.start = address,
		.kind = type < sizeof(kinds) ? kinds[type] : MEMORY_UNKNOWN,
	};
}

/* Memory calls that succeeded. */
static void note_memory(struct waits *waits, const struct wait_call *call)
{
	switch (call->category) {
	case TRACE_CATEGORY_ALLOC_DEVICE:
		note_range(waits, call->pointer, call->bytes, MEMORY_DEVICE);
		break;
	case TRACE_CATEGORY_ALLOC_MANAGED:
		note_range(waits, call->pointer, call->bytes, MEMORY_MANAGED);
		break;
	case TRACE_CATEGORY_ALLOC_HOST:
	case TRACE_CATEGORY_REGISTER:
		note_range(waits, call->pointer, call->bytes, MEMORY_PINNED);
		break;
	case TRACE_CATEGORY_UNREGISTER:
	case TRACE_CATEGORY_FREE:
		if (call->pointer)
			forget_range(waits, call->pointer, call->pointer + 1);
		break;
	default: break;
	}
}

/* ---------------------------------------------------------------- where */

static bool is_op(const struct span *span)
{
	return span->kind == TRACE_OP || span->kind == TRACE_OP_SPAN || span->kind == TRACE_NODE;
}

/* The innermost operator without Python in between; 0: none. */
static uint32_t innermost_op(const struct model_thread *thread, uint32_t from)
{
	while (from && !is_op(&thread->stack[from]) && thread->stack[from].kind != TRACE_FRAME)
		from--;
	return is_op(&thread->stack[from]) ? from : 0;
}

static enum design design_of_code(struct model *model, uint32_t code)
{
	uint8_t *known = &model->waits.designs[code];

	if (!*known) {
		*known = DESIGN_NONE + 1;
		for (unsigned i = DESIGN_NONE + 1; i < DESIGN_COUNT; i++)
			if (strstr(model->definitions.codes[code].file, design_files[i]))
				*known = (uint8_t)(i + 1);
	}
	return (enum design)(*known - 1);
}

static enum design design_around(struct model *model, const struct model_thread *thread)
{
	enum design found = DESIGN_NONE;

	for (uint32_t at = thread->stack[thread->top].frame; at && !found;
	     at = thread->stack[at - 1].frame)
		found = design_of_code(model, thread->stack[at].code);
	return found;
}

/*
 * Who synchronises without an operator: the program, by its own line or one of the ways that PyTorch and
 * others offer; or a library, in native code that it calls, or on a thread of its own.
 */
static bool is_asked_for(const struct model *model, const struct span *frame)
{
	static const char *const ways[] = {
		"/torch/cuda/", "/torch/accelerator/", "/torch/distributed/distributed_c10d.py",
		"/cupy/",       "/numba/cuda/",        "/cuda/bindings/",
		"/cuda/core/",
	};

	if (!frame->code)
		return model->definitions.code_count <= 1;
	for (unsigned i = 0; !frame->user && i < sizeof(ways) / sizeof(*ways); i++)
		if (strstr(model->definitions.codes[frame->code].file, ways[i]))
			return true;
	return frame->user;
}

/* `op`: the place of the innermost operator, or 0. */
static struct finding_key key_of(struct model *model, const struct model_thread *thread,
				 enum finding_kind kind, uint32_t op)
{
	const struct span *frame = &thread->stack[thread->stack[thread->top].frame];
	const struct op_context *context =
		thread->context_count ? &thread->contexts[thread->context_count - 1] : NULL;
	struct finding_key key = {
		.kind = kind,
		.explicit = !op && kind != FINDING_MEMORY && is_asked_for(model, frame),
		.design = design_around(model, thread),
		.op_kind = OP_KIND_SECTION,
		.code = frame->code,
		.site = frame->site,
		.user_code = frame->user ? frame->code : frame->user_code,
		.user_site = frame->user ? frame->site : frame->user_site,
		.thread = thread->index < model->waits.thread_count ?
				  model->waits.groups[thread->index] :
				  thread->index,
	};

	if (op && context &&
	    (context->key.kind == OP_KIND_OPERATOR || context->key.kind == OP_KIND_NODE)) {
		key.op_kind = context->key.kind;
		key.op = context->key.op;
		/* A backward node that no Python runs in: the forward operator's place. */
		if (context->key.kind == OP_KIND_NODE && !key.code) {
			key.code = context->key.code;
			key.site = context->key.site;
			key.user_code = context->key.user_code;
			key.user_site = context->key.user_site;
		}
	}
	if (thread->works_for) {
		const struct model_thread *waits = thread->works_for;
		const struct span *caller = &waits->stack[waits->stack[waits->top].frame];

		key.backward_code = caller->user ? caller->code : caller->user_code;
		key.backward_site = caller->user ? caller->site : caller->user_site;
	}
	return key;
}

static enum finding_kind small_read(const struct model *model, const struct model_thread *thread,
				    uint32_t op)
{
	uint32_t index = op ? model->tree.nodes[thread->stack[op].node].index : 0;
	const char *name =
		op && thread->stack[op].kind != TRACE_NODE ? model->definitions.ops[index] : "";

	if (!strcmp(name, "aten::_local_scalar_dense"))
		return FINDING_SCALAR_READ;
	/* A copy that the program asked for happens to be small. */
	if (!op || !strcmp(name, "aten::copy_"))
		return FINDING_DEVICE_TO_HOST;
	return FINDING_SIZE_READ;
}

/* The direction of a copy: cudaMemcpyDefault goes by the addresses. */
static uint64_t direction_of(const struct waits *waits, uint64_t kind, uint64_t destination,
			     uint64_t source)
{
	enum memory_kind to, from;

	if (kind != COPY_BY_ADDRESS)
		return kind;
	to = memory_at(waits, destination);
	from = memory_at(waits, source);
	if (to == MEMORY_UNKNOWN || from == MEMORY_UNKNOWN || to == MEMORY_MANAGED ||
	    from == MEMORY_MANAGED)
		return COPY_BY_ADDRESS;
	return (from == MEMORY_DEVICE ? 2u : 0u) + (to == MEMORY_DEVICE ? 1u : 0u);
}

/* ---------------------------------------------------------------- gaps */

/* Whether some thread waits for the device since before `since`: then it is at work still. */
static bool is_waited_for(const struct model *model, uint32_t device, uint64_t since)
{
	for (uint32_t i = 1; i < model->definitions.thread_count; i++) {
		const struct wait_call *call = model->threads[i] ? &model->threads[i]->wait.now :
								   NULL;

		if (call && call->open && call->device == device && call->start < since &&
		    (call->code != TRACE_MEMORY || call->category == TRACE_CATEGORY_FREE))
			return true;
	}
	return false;
}

static void close_gap(struct model *model, uint32_t device, uint64_t now)
{
	struct wait_gap *gap = &model->waits.gaps[device % WAIT_DEVICES];
	uint64_t units = now > gap->since ? now - gap->since : 0;

	if (!gap->finding && !gap->copy)
		return;
	if (is_waited_for(model, device, gap->since))
		units = 0;
	if (gap->finding)
		model->findings.rows[gap->finding].gap += units;
	else if (gap->copy)
		gap->copy->idle = units;
	gap->finding = 0;
	gap->copy = NULL;
}

/*
 * From `now` on the device has nothing to do, if nobody else gave it work. A gap that was open ends where
 * this wait began: since then the device has been waited for.
 */
static void open_gap(struct model *model, uint32_t device, const struct wait_call *call,
		     uint32_t finding)
{
	close_gap(model, device, call->start);
	model->waits.gaps[device % WAIT_DEVICES] =
		(struct wait_gap){ .since = call->end, .finding = finding };
}

/* What the call waited for is done. */
static void take_queued(struct model *model, struct wait_call *call)
{
	struct queues *queues = &model->waits.queues;

	if (call->kind == FINDING_EVENT_SYNC)
		queues_event_waited(queues, model, call->stream, &call->key, &call->queued);
	else if (call->code == TRACE_MEMORY || call->kind == FINDING_DEVICE_SYNC)
		queues_all_waited(queues, model, &call->key, &call->queued);
	else
		queues_stream_waited(queues, model, call->stream, &call->key, &call->queued);
}

/* Frees wait for the device; what else takes or gives memory does so rarely. */
static bool empties_device(struct waits *waits, const struct wait_call *call)
{
	if (call->code == TRACE_MEMORY)
		return call->category == TRACE_CATEGORY_FREE;
	return call->code != TRACE_SYNC || call->kind != FINDING_EVENT_SYNC ||
	       !queues_more_behind(&waits->queues, call->stream);
}

/* ---------------------------------------------------------------- calls */

static uint32_t add(struct model *model, struct model_thread *thread, const struct wait_call *call)
{
	uint32_t finding = findings_add(model, thread, &call->key, call->bytes, call->start);

	model->findings.rows[finding].queued.all += call->queued.all;
	model->findings.rows[finding].queued.own += call->queued.own;
	if (call->class)
		findings_add_call(&model->findings, finding, call->class, call->duration);
	findings_add_stack(&model->findings, finding, call->stack, call->duration);
	return finding;
}

/* No synchronise followed the last copy: it waits only where the driver has to stage it. */
static void settle_copy(struct model *model, struct model_thread *thread)
{
	struct wait_call *copy = &thread->wait.copy;

	if (copy->copied && copy->pageable) {
		struct wait_gap *gap = &model->waits.gaps[copy->device % WAIT_DEVICES];
		uint32_t finding;

		copy->key.kind = FINDING_PAGEABLE_COPY;
		copy->key.explicit = false;
		finding = add(model, thread, copy);
		model->findings.rows[finding].gap += copy->idle;
		if (thread->device_wait_end == copy->end)
			device_waited(thread, true, finding, copy->end);
		if (gap->copy == copy)
			*gap = (struct wait_gap){ .since = copy->end, .finding = finding };
	}
	copy->copied = false;
}

static void begin_copy(struct model *model, struct model_thread *thread, struct wait_call *call,
		       uint64_t kind, uint64_t destination, uint64_t source, uint32_t op)
{
	uint64_t direction = direction_of(&model->waits, kind, destination, source);
	uint64_t host = direction == COPY_D2H ? destination : source;

	if (direction != COPY_D2H && direction != COPY_H2D) {
		call->open = false;
		return;
	}
	call->direction = (uint8_t)direction;
	call->pageable = memory_at(&model->waits, host) == MEMORY_PAGEABLE;
	call->kind = direction == COPY_H2D      ? FINDING_HOST_TO_DEVICE :
		     call->bytes <= SMALL_BYTES ? small_read(model, thread, op) :
						  FINDING_DEVICE_TO_HOST;
	call->key = key_of(model, thread, (enum finding_kind)call->kind, op);
	call->key.explicit = false;
	call->key.copy = call->function;
	call->key.function = call->function;
}

static enum finding_kind kind_of_sync(const char *function)
{
	return !strncmp(function, "cudaStream", 10) ? FINDING_STREAM_SYNC :
	       !strncmp(function, "cudaEvent", 9)   ? FINDING_EVENT_SYNC :
						      FINDING_DEVICE_SYNC;
}

static bool same_scope(struct wait_scope a, struct wait_scope b)
{
	return a.span == b.span && a.enter == b.enter;
}

static void begin_sync(struct model *model, struct model_thread *thread, struct wait_call *call,
		       uint32_t op)
{
	struct wait_call *copy = &thread->wait.copy;
	enum finding_kind kind = kind_of_sync(model->definitions.functions[call->function].name);

	if (kind == FINDING_STREAM_SYNC && copy->copied && copy->stream == call->stream &&
	    same_scope(copy->scope, call->scope)) {
		call->key = copy->key;
		call->key.function = call->function;
		call->kind = copy->kind;
		call->bytes = copy->bytes;
		return;
	}
	settle_copy(model, thread);
	call->kind = (uint8_t)kind;
	call->key = key_of(model, thread, kind, op);
	call->key.function = call->function;
}

/* Those that never wait: frees and allocations in a stream's order, and nothing at all. */
static bool memory_may_wait(const char *function, const struct wait_call *call)
{
	if (call->category == TRACE_CATEGORY_QUERY || strstr(function, "Async"))
		return false;
	return call->category != TRACE_CATEGORY_FREE || call->pointer ||
	       !strcmp(function, "cudaMemPoolTrimTo") || !strcmp(function, "cudaDeviceReset");
}

/* It never waits, but a program may ask until it is told so. */
static void add_query(struct model *model, const struct model_thread *thread, uint32_t function,
		      uint64_t now)
{
	struct finding_key key =
		key_of(model, thread, FINDING_POLLING, innermost_op(thread, thread->top - 1));

	key.function = function;
	findings_add(model, thread, &key, 0, now);
}

void waits_called(struct model *model, struct model_thread *thread, const struct trace_event *event,
		  unsigned category, uint32_t function)
{
	struct wait_thread *wait = &thread->wait;
	struct wait_call *call = &wait->now;

	if (category == TRACE_CATEGORY_CAPTURE) {
		const char *name = model->definitions.functions[function].name;

		wait->capturing = !strncmp(name, "cudaStreamBegin", 15);
		wait->copy.copied = false;
		return;
	}
	if (wait->capturing && event->code != TRACE_MEMORY)
		return;
	if (category == TRACE_CATEGORY_QUERY && event->code == TRACE_SYNC) {
		add_query(model, thread, function, event->time);
		return;
	}
	if (event->code != TRACE_SYNC && wait->copy.copied)
		settle_copy(model, thread);
	/* Calls of a library launch too. */
	if (event->code != TRACE_SYNC && event->code != TRACE_MEMORY) {
		close_gap(model, wait->device, event->time);
		if (event->code != TRACE_CALL)
			queues_work(&model->waits.queues, thread, event->fields[2]);
		if (event->code != TRACE_COPY)
			return;
	}
	uint32_t around = thread->top - 1, op = innermost_op(thread, around);
	uint32_t scope = op ? op : around;
	*call = (struct wait_call){
		.open = true,
		.code = (uint8_t)event->code,
		.category = (uint8_t)category,
		.function = function,
		.device = wait->device,
		.span = thread->top,
		.start = event->time,
		.scope = { scope, thread->stack[scope].enter },
	};
	switch (event->code) {
	case TRACE_COPY:
		call->stream = event->fields[2];
		call->bytes = event->fields[4];
		begin_copy(model, thread, call, event->fields[3], event->fields[5],
			   event->fields[6], op);
		break;
	case TRACE_SYNC:
		call->stream = event->fields[2];
		if (category == TRACE_CATEGORY_SYNC)
			begin_sync(model, thread, call, op);
		break;
	default:
		call->pointer = event->fields[2];
		call->bytes = event->fields[3];
		call->kind = FINDING_MEMORY;
		/* What only a query told needs no place. */
		if (category != TRACE_CATEGORY_QUERY)
			call->key = key_of(model, thread, FINDING_MEMORY, op);
		call->key.function = function;
	}
}

void waits_result(struct model *model, struct model_thread *thread, uint64_t value)
{
	struct wait_call *call = &thread->wait.now;

	if (!call->open || call->span != thread->top)
		return;
	if (call->code == TRACE_SYNC)
		queues_event(&model->waits.queues, call->stream, value);
	else if (call->category == TRACE_CATEGORY_QUERY)
		note_answer(&model->waits, call->pointer, value);
	else
		call->pointer = value;
}

void waits_stack(struct model_thread *thread, uint64_t stack)
{
	struct wait_call *call = &thread->wait.now;

	if (call->open && call->span == thread->top && stack < UINT32_MAX)
		call->stack = (uint32_t)stack;
}

void waits_ended(struct model *model, struct model_thread *thread, uint32_t class,
		 uint64_t duration, uint64_t result, uint64_t now)
{
	struct wait_thread *wait = &thread->wait;
	struct wait_call *call = &wait->now;
	const char *name = model->definitions.functions[call->function].name;
	uint32_t finding = 0;

	if (!call->open || call->span != thread->top)
		return;
	call->open = false;
	call->class = class;
	call->duration = duration;
	call->end = now;
	if (call->code == TRACE_MEMORY) {
		if (!result)
			note_memory(&model->waits, call);
		if (memory_may_wait(name, call) && !wait->capturing) {
			if (empties_device(&model->waits, call))
				take_queued(model, call);
			finding = add(model, thread, call);
		}
	} else if (call->category == TRACE_CATEGORY_OTHER) {
		return;
	} else if (call->code == TRACE_SYNC) {
		/* Of a copy that had waited before. */
		if (wait->copy.copied)
			call->queued = wait->copy.queued;
		take_queued(model, call);
		finding = add(model, thread, call);
		if (wait->copy.copied && wait->copy.class) {
			findings_add_call(&model->findings, finding, wait->copy.class,
					  wait->copy.duration);
			findings_add_stack(&model->findings, finding, wait->copy.stack,
					   wait->copy.duration);
		}
		wait->copy.copied = false;
	} else if (call->category == TRACE_CATEGORY_COPY_SYNC) {
		take_queued(model, call);
		finding = add(model, thread, call);
	} else {
		bool waits = call->pageable &&
			     (call->direction == COPY_D2H || call->bytes > STAGED_BYTES);

		if (waits)
			take_queued(model, call);
		wait->copy = *call;
		wait->copy.copied = true;
		if (waits) {
			open_gap(model, wait->device, call, 0);
			model->waits.gaps[wait->device % WAIT_DEVICES].copy = &wait->copy;
			device_waited(thread, true, 0, now);
		}
	}
	if (finding && (call->code != TRACE_MEMORY || empties_device(&model->waits, call)))
		device_waited(
			thread,
			call->kind != FINDING_STREAM_SYNC && call->kind != FINDING_EVENT_SYNC &&
				call->kind != FINDING_DEVICE_SYNC && call->kind != FINDING_MEMORY,
			finding, now);
	if (finding && empties_device(&model->waits, call))
		open_gap(model, wait->device, call, finding);
}

void waits_device(struct model_thread *thread, uint64_t device)
{
	thread->wait.device = device < WAIT_DEVICES ? (uint32_t)device : 0;
}

void waits_finish(struct model *model)
{
	for (uint32_t i = 0; i < model->definitions.thread_count; i++)
		if (model->threads[i])
			settle_copy(model, model->threads[i]);
}
