/*
 * site.c: where a thread's Python code is: tare_python_site of runtime.h.
 *
 * Reads the thread's own current frame, so it needs no GIL. Where that is the frame that the trace's
 * reader takes for the innermost one, the instruction's offset says it all; else AT names the code.
 */
#include "pyhooks/pyhooks.h"

#include "pyhooks/code.h"

/* The thread state of this thread, which may have none. */
static void *thread_now(void)
{
	/* The thread states of daemon threads are freed then. */
	return python.is_finalizing() ? NULL : python.gilstate_thread();
}

/* A thread that is not known to hold the GIL: whether it does. */
static bool holds_gil(const void *python_thread)
{
	return python.unchecked_thread() == python_thread;
}

uint64_t site_of_frame(struct tare_thread *thread, void *python_thread, const void *frame,
		       bool gil_held)
{
	if (!frame ||
	    python_field(python_thread, python.thread_interpreter) != (uintptr_t)python.interpreter)
		return 0;
	void *code = python_frame_code(frame);
	if (!python_is_code(code))
		return 0;
	uint32_t id = code_known(code);
	if (!id && (gil_held || holds_gil(python_thread)))
		id = code_define(thread, code);
	if (!id)
		return 0;
	if (id != thread->code) {
		trace_put(thread->buffer, tare_now(), AT, id);
		thread->code = id;
		thread->frame = (void *)((uintptr_t)thread->frame | FRAME_IS_NOT_CODE);
	}
	return (uint64_t)(python_frame_offset(frame) + 1);
}

TARE_HOT uint64_t site_now(struct tare_thread *thread, void *python_thread, bool gil_held)
{
	/* What holds the GIL is known for sure; a thread may have had other thread states before. */
	if (gil_held)
		python_thread = python.unchecked_thread();
	else if (!python_thread)
		python_thread = thread_now();
	if (!python_thread)
		return 0;
	const void *frame = python_current_frame(python_thread);
	if (tare_likely(frame && frame == thread->frame))
		return (uint64_t)(python_frame_offset(frame) + 1);
	return site_of_frame(thread, python_thread, frame, gil_held);
}
