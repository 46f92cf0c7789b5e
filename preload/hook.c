/*
 * hook.c: writes the events of hooked library functions. See hook.h.
 */
#include "preload/hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "preload/process.h"
#include "preload/stacks.h"

__thread int hook_device;

struct hook_info hook_runtimes = { .key = "cuda" }, hook_libraries = { .key = "libraries" };

bool hook_resolve(struct hook *hook)
{
	if (hook_real(hook) == hook->first) {
		const struct hook_library *library = hook->library;
		int saved_errno = errno;
		void *found = tare_find_function(
			library->soname, library->unversioned ? NULL : library->soname, hook->name);

		errno = saved_errno;
		if (!found)
			return false;
		__atomic_store_n(&hook->real, (hook_function *)found, __ATOMIC_RELAXED);
	}
	return true;
}

#define BOUND_MAX 256u

struct bound {
	const void *caller; /* written last */
	const struct hook *hook;
	hook_function *real;
};

static TARE_COLD hook_function *bind(struct hook *hook, const void *caller, struct bound *free)
{
	int saved_errno = errno;
	hook_function *real = (hook_function *)tare_find_for(caller, hook->name);

	if (!real)
		real = hook_real(hook);
	errno = saved_errno;
	if (free) {
		free->hook = hook;
		free->real = real;
		__atomic_store_n(&free->caller, caller, __ATOMIC_RELEASE);
	}
	return real;
}

hook_function *hook_real_for(struct hook *hook, const void *caller)
{
	static struct bound bound[BOUND_MAX];
	static uint32_t used;
	uint32_t count = __atomic_load_n(&used, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < BOUND_MAX; i++)
		if (__atomic_load_n(&bound[i].caller, __ATOMIC_ACQUIRE) == caller &&
		    bound[i].hook == hook)
			return bound[i].real;
	/* Where there is no room left each call is looked up. */
	if (count < BOUND_MAX)
		count = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	return bind(hook, caller, count < BOUND_MAX ? &bound[count] : NULL);
}

/* Several libraries of one process one after the other. */
static void tell_library(struct hook_library *library, const void *address)
{
	char *text = library->info->text;
	size_t used = strlen(text), soname_bytes = strlen(library->soname), path_bytes;
	Dl_info info;

	if (__atomic_exchange_n(&library->told, true, __ATOMIC_RELAXED))
		return;
	if (!dladdr(address, &info) || !info.dli_fname)
		return;
	path_bytes = strlen(info.dli_fname);
	if (used + soname_bytes + path_bytes + sizeof(", ") + sizeof(" ") >
	    sizeof(library->info->text))
		return;
	if (used) {
		memcpy(text + used, ", ", 2);
		used += 2;
	}
	memcpy(text + used, library->soname, soname_bytes);
	used += soname_bytes;
	text[used++] = ' ';
	memcpy(text + used, info.dli_fname, path_bytes + 1);
	tare_note_info(library->info->key, text);
	process_note_settings();
	tare_verbose("hooked: ", text);
}

static struct trace_str str(const char *text)
{
	return (struct trace_str){ text, (uint32_t)strlen(text) };
}

/* Before a hook's first event in a trace. False: there is no such function, nothing to record. */
static TARE_COLD bool hook_define(struct hook *hook, struct tare_thread *thread)
{
	struct trace_buffer *buffer = thread->buffer;
	uint32_t depth = buffer->depth;
	bool found;

	trace_enter(buffer, tare_now(), TARE, 2);
	stacks_set_up();
	found = hook_resolve(hook);
	if (found) {
		uint32_t id = tare_next_id(&tare_function_ids);

		tell_library(hook->library, (const void *)hook_real(hook));
		trace_define(buffer, TRACE_RECORD_FUNCTION,
			     &(struct record_FUNCTION){ .function = id,
							.category = (uint8_t)hook->category,
							.name = str(hook->name),
							.library = str(hook->library->soname) });
		/* Another thread may do the same: both ids are defined then, and either is right. */
		__atomic_store_n(&hook->function, id, __ATOMIC_RELAXED);
		__atomic_store_n(&hook->generation, tare_generation, __ATOMIC_RELEASE);
		tare_cuda_called();
	}
	trace_leave(buffer, tare_now(), depth, 0);
	return found;
}

static TARE_COLD void tell_device(struct tare_thread *thread)
{
	thread->device = hook_device;
	trace_put(thread->buffer, tare_now(), DEVICE, (uint64_t)hook_device);
}

static inline __attribute__((always_inline)) struct tare_thread *
hook_begin(struct hook *hook, const void *frame, enum tare_source source)
{
	struct tare_thread *thread = tare_begin(source);

	if (tare_unlikely(!thread))
		return NULL;
	if (tare_unlikely(__atomic_load_n(&hook->generation, __ATOMIC_ACQUIRE) !=
			  tare_generation) &&
	    !hook_define(hook, thread)) {
		tare_end(thread);
		return NULL;
	}
	if (tare_unlikely(thread->device != hook_device))
		tell_device(thread);
	tare_close_ops(thread, frame);
	return thread;
}

/* The span is its depth + 1. */
#define ENTER(asks, EVENT, ...)                                                                    \
	do {                                                                                       \
		struct tare_thread *thread = hook_begin(hook, frame, asks);                        \
		uint64_t span;                                                                     \
                                                                                                   \
		if (!thread)                                                                       \
			return 0;                                                                  \
		span = (uint64_t)thread->buffer->depth + 1;                                        \
		thread->call = hook->category == TRACE_CATEGORY_LIBRARY ? 0 : (uint32_t)span;      \
		trace_enter(thread->buffer, tare_now(), EVENT,                                     \
			    __atomic_load_n(&hook->function, __ATOMIC_RELAXED), __VA_ARGS__);      \
		tare_end(thread);                                                                  \
		return span;                                                                       \
	} while (0)

TARE_HOT uint64_t hook_enter_CALL(struct hook *hook, const void *frame)
{
	ENTER(TARE_SOURCE_CUDA, CALL, tare_site(thread));
}

TARE_HOT uint64_t hook_enter_LAUNCH(struct hook *hook, const void *frame, const void *stream)
{
	ENTER(TARE_SOURCE_CUDA, LAUNCH, tare_site(thread), (uintptr_t)stream);
}

TARE_HOT uint64_t hook_enter_COPY(struct hook *hook, const void *frame, const void *stream,
				  unsigned kind, uint64_t bytes, const void *destination,
				  const void *source)
{
	ENTER(TARE_SOURCE_CUDA, COPY, tare_site(thread), (uintptr_t)stream, kind, bytes,
	      (uintptr_t)destination, (uintptr_t)source);
}

TARE_HOT uint64_t hook_enter_SET(struct hook *hook, const void *frame, const void *stream,
				 uint64_t bytes, const void *pointer)
{
	ENTER(TARE_SOURCE_CUDA, SET, tare_site(thread), (uintptr_t)stream, bytes,
	      (uintptr_t)pointer);
}

TARE_HOT uint64_t hook_enter_MEMORY(struct hook *hook, const void *frame, const void *pointer,
				    uint64_t bytes)
{
	ENTER(TARE_SOURCE_ALLOCATION, MEMORY, tare_site(thread), (uintptr_t)pointer, bytes);
}

TARE_HOT uint64_t hook_enter_SYNC(struct hook *hook, const void *frame, const void *handle)
{
	ENTER(TARE_SOURCE_CUDA, SYNC, tare_site(thread), (uintptr_t)handle);
}

TARE_HOT void hook_leave(uint64_t span, int result, uint64_t value)
{
	uint32_t depth = (uint32_t)(span - 1);
	struct tare_thread *thread = tare_begin_leave();
	uint64_t now;

	if (tare_unlikely(!thread))
		return;
	thread->call = 0;
	now = tare_now();
	if (value != HOOK_NO_VALUE && thread->buffer->depth == span)
		trace_put(thread->buffer, now, RESULT, value);
	trace_leave(thread->buffer, now, depth, (uint64_t)(unsigned)result);
	if (tare_unlikely(tare_device_flush_due))
		tare_device_flush(thread);
	tare_end(thread);
}

/* All of it is written as of the moment at which the call returned. */
static TARE_COLD void leave_with_stack(uint64_t span, const void *frame, int result, uint64_t value)
{
	struct tare_thread *thread = tare_begin_leave();
	struct trace_buffer *buffer;
	uint32_t depth = (uint32_t)(span - 1), stack = 0;
	bool is_new = false;
	uint64_t now;

	if (!thread)
		return;
	thread->call = 0;
	now = tare_now();
	buffer = thread->buffer;
	if (buffer->depth == span) {
		/* Nothing was written since the enter. */
		if (now - buffer->last_time >= stacks_least_units && !buffer->stopped)
			stack = stacks_find(thread, frame, &is_new);
		if (value != HOOK_NO_VALUE)
			trace_put(buffer, now, RESULT, value);
		if (stack)
			trace_put(buffer, now, STACK, stack);
	}
	trace_leave(buffer, now, depth, (uint64_t)(unsigned)result);
	if (is_new) {
		depth = buffer->depth;
		trace_enter(buffer, now, TARE, 2);
		trace_leave(buffer, tare_now(), depth, 0);
	}
	if (tare_unlikely(tare_device_flush_due))
		tare_device_flush(thread);
	tare_end(thread);
}

TARE_HOT void hook_leave_waited(uint64_t span, const void *frame, int result, uint64_t value)
{
	if (tare_likely(!stacks_on))
		hook_leave(span, result, value);
	else
		leave_with_stack(span, frame, result, value);
}
