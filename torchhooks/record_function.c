/*
 * record_function.c: torch's own profiling callbacks: operators where taps do not serve.
 *
 * One for FUNCTION costs each operator about 0.1 us, so it is only the fallback, and what tests compare the taps with.
 * Callbacks run inside the program's calls: they must not throw, and call nothing of torch but the name.
 */
#include <string.h>

#include "torchhooks/operators.h"
#include "torchhooks/torch.h"

enum { SCOPE_FUNCTION = 0, SCOPES = 10 };

/* at::RecordFunctionCallback. `start` returns std::unique_ptr<ObserverContext> in memory: none. */
struct callback {
	void *(*start)(void **context, const void *record);
	void (*end)(const void *record, void *context);
	double sampling_probability;
	uint8_t scopes[SCOPES];
	uint8_t needs_inputs, needs_outputs, needs_ids;
};

_Static_assert(sizeof(struct callback) == 40, "passed by value to torch");

uint64_t record_function_add(unsigned scope, void *(*start)(void **, const void *),
			     void (*end)(const void *, void *))
{
	uint64_t (*add_callback)(struct callback) =
		torch_find("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	struct callback callback = { .start = start, .end = end, .sampling_probability = 1.0 };

	callback.scopes[scope] = 1;
	return add_callback ? add_callback(callback) : 0;
}

static uint64_t ops_handle;

/* Others than operators are reported too, by names like "detach" or "MyFunction", and nodes. */
static bool is_operator(const char *name)
{
	return strstr(name, "::") && strncmp(name, "autograd::engine::", 18) != 0;
}

/*
 * Whether to record what was dispatched. An operator that came through the tap is here just after it:
 * then the tap works, and this callback is not needed.
 */
static bool is_wanted(const char *name)
{
	if (!is_operator(name))
		return false;
	if (tare_likely(torch.ops_by_record_function))
		return true;
	if (torch.tap_fired) {
		uint64_t handle = __atomic_exchange_n(&ops_handle, 0, __ATOMIC_RELAXED);

		if (handle && torch.remove_callback)
			torch.remove_callback(handle);
		return false;
	}
	torch.ops_by_tap = false;
	torch.ops_by_record_function = true;
	tare_note_layer("ops.tap", 2, "never called though operators are dispatched");
	tare_note_layer("ops.record_function", 1, "each operator, instead of the tap");
	ranges_register();
	return true;
}

static void *op_start(void **context, const void *record)
{
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);
	const char *name = torch.range_name(record);

	*context = NULL;
	if (!thread)
		return context;
	if (is_wanted(name) && thread->op_span_count < TARE_OPEN_OPS_MAX) {
		const char *overload = torch.range_overload ? torch.range_overload(record) : "";
		uint32_t op = operator_named(thread, name, overload ? overload : "");
		struct tare_op_span *span = &thread->op_spans[thread->op_span_count++];
		uint64_t site;

		if (!thread->section_open)
			sequence_note(thread);
		site = tare_site(thread);
		span->record = record;
		span->depth = thread->buffer->depth;
		trace_enter(thread->buffer, tare_now(), OP_SPAN, op, site);
	}
	tare_end(thread);
	return context;
}

static void op_end(const void *record, void *context)
{
	struct tare_thread *thread = tare_begin_leave();

	(void)context;
	if (!thread)
		return;
	for (uint32_t i = thread->op_span_count; i > 0; i--) {
		if (thread->op_spans[i - 1].record != record)
			continue;
		thread->op_span_count = i - 1;
		trace_leave(thread->buffer, tare_now(), thread->op_spans[i - 1].depth, 0);
		break;
	}
	tare_end(thread);
}

bool ops_register(void)
{
	if (torch.range_name)
		ops_handle = record_function_add(SCOPE_FUNCTION, op_start, op_end);
	return ops_handle != 0;
}
