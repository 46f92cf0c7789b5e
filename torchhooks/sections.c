/*
 * sections.c: native sections and the GIL, as libtorch_python uses it.
 *
 * Its bindings release the GIL around the dispatch: PyEval_SaveThread opens a section,
 * PyEval_RestoreThread ends it. Native code that calls Python takes the GIL back
 * (pybind11::gil_scoped_acquire, by PyEval_AcquireThread) and so suspends the section; the end of that
 * is a PyEval_SaveThread too. Only libtorch_python's own calls come through here: its slots are patched.
 */
#include "torchhooks/got.h"
#include "torchhooks/torch.h"

#include <dlfcn.h>

/*
 * gil_scoped_acquire is built and destroyed by one function, so its two calls come from nearly the
 * same place on the stack (16 bytes apart in the wheels). What Python code in between releases is
 * further down, at least 96 bytes: the frames of three functions.
 */
#define SAME_PLACE_BYTES 40u

static void *(*real_save)(void);
static void (*real_restore)(void *python_thread);
static void (*real_acquire)(void *python_thread);
static void (*real_release)(void *python_thread);
static int (*real_ensure)(void);
static void (*real_ensure_end)(int state);
static void (*real_delete)(void);
static int (*check)(void); /* PyGILState_Check: this thread has the GIL */

/* Takes span `index` and those in it off the thread's stack of spans. */
static inline void drop(struct tare_thread *thread, uint32_t index)
{
	struct tare_gil_span *span = &thread->gil_spans[index];

	ops_leave(thread, (struct ops_around){ span->op_base, span->op_count });
	thread->section_open = span->section_open;
	thread->gil_count = index;
}

/* Drops spans that others have left: frames, when an exception passes. */
static inline void prune(struct tare_thread *thread)
{
	while (tare_unlikely(thread->gil_count && thread->gil_spans[thread->gil_count - 1].depth >=
							  thread->buffer->depth))
		drop(thread, thread->gil_count - 1);
}

static inline bool push(struct tare_thread *thread, uintptr_t here, bool callback)
{
	if (thread->gil_count == TARE_GIL_SPANS_MAX)
		return false;
	struct ops_around around = ops_enter(thread);
	thread->gil_spans[thread->gil_count++] = (struct tare_gil_span){
		.frame = here,
		.depth = thread->buffer->depth,
		.op_base = around.base,
		.op_count = around.count,
		.section_open = thread->section_open,
		.callback = callback,
	};
	thread->section_open = !callback;
	return true;
}

/* Leaves span `index` and what was left open in it. */
static inline void leave(struct tare_thread *thread, uint32_t index, uint64_t now)
{
	drop(thread, index);
	trace_leave(thread->buffer, now, thread->gil_spans[index].depth, 0);
}

/* Index of the outermost of the spans of a kind whose frames are gone by now; or gil_count. */
static inline uint32_t ended(struct tare_thread *thread, uintptr_t here, bool callback)
{
	uint32_t found = thread->gil_count;

	for (uint32_t i = thread->gil_count; i > 0; i--) {
		struct tare_gil_span *span = &thread->gil_spans[i - 1];

		if (span->frame > here + SAME_PLACE_BYTES)
			break;
		if (span->callback == callback)
			found = i - 1;
	}
	return found;
}

/* 1 us on the trace's clock, by the two clock pairs that the trace begins with. */
TARE_COLD static void short_wait_set_up(void)
{
	const struct trace_header *header = tare_process.file.header;
	uint64_t ns = header->open.monotonic_ns - header->load.monotonic_ns;
	uint64_t units = header->open.units - header->load.units;

	torch.short_wait_units = ns && units * 1000 / ns ? units * 1000 / ns : 1000;
}

static inline void waited(struct tare_thread *thread, uint64_t before, uint64_t after)
{
	uint32_t depth = thread->buffer->depth;

	if (tare_unlikely(!torch.short_wait_units))
		short_wait_set_up();
	if (tare_likely(after - before < torch.short_wait_units))
		return;
	trace_enter(thread->buffer, before, GIL, 0);
	trace_leave(thread->buffer, after, depth, 0);
}

static inline void section_enter(struct tare_thread *thread, const void *frame_address)
{
	uint64_t site = 0;

	tare_close_ops(thread, frame_address);
	sequence_note(thread);
	if (tare_python_site)
		site = tare_python_site(thread, thread->python_thread, true);
	if (push(thread, (uintptr_t)frame_address, false))
		trace_enter(thread->buffer, tare_now(), SECTION, site);
	if (tare_unlikely(!torch.tap_fired))
		torch_suspect_tap();
}

/* Native code is about to take the GIL. Returns the time, or 0 where nothing is recorded. */
TARE_HOT static uint64_t callback_enter(void *python_thread, const void *frame_address)
{
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);
	uint32_t index;
	uint64_t now;

	if (!thread)
		return 0;
	prune(thread);
	index = ended(thread, (uintptr_t)frame_address, true);
	if (tare_unlikely(index < thread->gil_count)) /* its end was not seen */
		leave(thread, index, tare_now());
	if (python_thread)
		thread->python_thread = python_thread;
	tare_close_ops(thread, frame_address);
	sequence_note(thread);
	now = tare_now();
	if (push(thread, (uintptr_t)frame_address, true))
		trace_enter(thread->buffer, now, CALLBACK, 0);
	tare_end(thread);
	return now;
}

/* It has the GIL. */
TARE_HOT static void callback_has_gil(uint64_t before)
{
	struct tare_thread *thread = before ? tare_begin_leave() : NULL;

	if (thread) {
		waited(thread, before, tare_now());
		tare_end(thread);
	}
}

TARE_HOT static void *hook_save(void)
{
	const void *frame_address = __builtin_frame_address(0);
	struct tare_thread *thread = tare_begin(TARE_SOURCE_OP);
	void *python_thread;
	uint32_t index;

	if (!thread)
		return real_save();
	prune(thread);
	index = ended(thread, (uintptr_t)frame_address, true);
	if (index < thread->gil_count) {
		sequence_note(thread);
		leave(thread, index, tare_now());
	} else {
		index = ended(thread, (uintptr_t)frame_address, false);
		if (tare_unlikely(index < thread->gil_count)) /* its end was not seen */
			leave(thread, index, tare_now());
		section_enter(thread, frame_address);
	}
	tare_end(thread);
	python_thread = real_save();
	thread->python_thread = python_thread;
	return python_thread;
}

/* The section that the GIL comes back to: the innermost, unless a callback out of it goes on. */
static inline uint32_t section_ending(struct tare_thread *thread, uintptr_t here)
{
	for (uint32_t i = thread->gil_count; i > 0; i--) {
		struct tare_gil_span *span = &thread->gil_spans[i - 1];

		if (!span->callback)
			return i - 1;
		if (span->frame > here + SAME_PLACE_BYTES)
			break;
	}
	return thread->gil_count;
}

TARE_HOT static void hook_restore(void *python_thread)
{
	struct tare_thread *thread;
	uint64_t before, after;
	uint32_t index;

	if (tare_tls.state != TARE_ON) {
		real_restore(python_thread);
		return;
	}
	before = tare_now();
	real_restore(python_thread);
	if (!(thread = tare_begin_leave()))
		return;
	after = tare_now();
	thread->python_thread = python_thread;
	prune(thread);
	waited(thread, before, after);
	index = section_ending(thread, (uintptr_t)__builtin_frame_address(0));
	if (tare_likely(index < thread->gil_count)) {
		uint64_t sequence = sequence_changed(thread);

		if (tare_unlikely(sequence))
			sequence_tell(thread, sequence, after);
		leave(thread, index, after);
	}
	tare_end(thread);
}

TARE_HOT static void hook_acquire(void *python_thread)
{
	uint64_t before = callback_enter(python_thread, __builtin_frame_address(0));

	real_acquire(python_thread);
	callback_has_gil(before);
}

static int hook_ensure(void)
{
	bool takes_it = check && !check();
	uint64_t before = takes_it ? callback_enter(NULL, __builtin_frame_address(0)) : 0;
	int state = real_ensure();

	callback_has_gil(before);
	return state;
}

TARE_HOT static void release(void)
{
	struct tare_thread *thread = tare_begin_leave();

	if (!thread)
		return;
	prune(thread);
	if (thread->gil_count && thread->gil_spans[thread->gil_count - 1].callback) {
		sequence_note(thread);
		leave(thread, thread->gil_count - 1, tare_now());
	}
	tare_end(thread);
}

TARE_HOT static void hook_release(void *python_thread)
{
	release();
	real_release(python_thread);
}

static void hook_ensure_end(int state)
{
	if (state == 1) /* PyGILState_UNLOCKED: the call that gave it took the GIL */
		release();
	real_ensure_end(state);
}

/* The thread state is freed: nobody may look into it any more. */
static void hook_delete(void)
{
	struct tare_thread *thread = tare_tls.thread;

	release();
	if (thread)
		thread->python_thread = NULL;
	real_delete();
}

static void *no_save(void)
{
	return NULL;
}

static void no_restore(void *python_thread)
{
	(void)python_thread;
}

uint64_t sections_calibrate(struct tare_thread *thread)
{
	real_save = no_save;
	real_restore = no_restore;
	torch.tap_fired = true;
	hook_save();
	uint64_t enter = thread->buffer->last_time;
	hook_restore(NULL);
	return thread->buffer->last_time - enter;
}

#define GIL_HOOKS(HOOK)                                                                            \
	HOOK("PyEval_SaveThread", hook_save, real_save)                                            \
	HOOK("PyEval_RestoreThread", hook_restore, real_restore)                                   \
	HOOK("PyEval_AcquireThread", hook_acquire, real_acquire)                                   \
	HOOK("PyEval_ReleaseThread", hook_release, real_release)                                   \
	HOOK("PyGILState_Ensure", hook_ensure, real_ensure)                                        \
	HOOK("PyGILState_Release", hook_ensure_end, real_ensure_end)                               \
	HOOK("PyThreadState_DeleteCurrent", hook_delete, real_delete)

static struct got_hook gil_hooks[] = {
#define HOOK_(function, hook, pointer) { function, (void *)hook, (void **)&pointer, false },
	GIL_HOOKS(HOOK_)
#undef HOOK_
};

bool sections_patch(void)
{
	check = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
	got_patch("libtorch_python.so", gil_hooks, sizeof(gil_hooks) / sizeof(gil_hooks[0]));
	return gil_hooks[0].patched && gil_hooks[1].patched;
}
