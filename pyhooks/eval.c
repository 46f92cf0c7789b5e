/*
 * eval.c: the hook that every Python frame passes (PEP 523).
 *
 * Installed once, and only over the interpreter's own evaluator: another one, such as that of
 * torch._dynamo, chains to us, and installing again would chain in a circle. The interpreter's own
 * is called in every case, also to throw into a frame, and its result goes back as it is.
 */
#include "pyhooks/pyhooks.h"

#include <errno.h>
#include <pthread.h>

#include "pyhooks/code.h"

#define RECURSION_UNITS   2  /* what the evaluator takes of thread_recursion */
#define HOW_DISTANCE_UNIT 16 /* bytes of FRAME's `how` */
#define HOW_DISTANCE_MAX  1023u

/*
 * Below that address this thread's frames run without the hook, see eval_deep. UINTPTR_MAX: not known
 * yet; 0: no limit.
 */
static __thread uintptr_t stack_limit = UINTPTR_MAX;
static __thread uintptr_t stack_low;

static inline __attribute__((always_inline)) void *evaluate(void *python_thread, void *frame,
							    int throwflag)
{
	if (!python.thread_recursion)
		return python.eval_default(python_thread, frame, throwflag);
	/* With a hook each Python call counts as C recursion, which a program without one never pays. */
	int *left = (int *)((char *)python_thread + python.thread_recursion);
	*left += RECURSION_UNITS;
	void *result = python.eval_default(python_thread, frame, throwflag);
	*left -= RECURSION_UNITS;
	return result;
}

static void *frame_hook(void *python_thread, void *frame, int throwflag);

/* Whether `stack` is below this thread's limit, which is looked up when it is not known. */
TARE_COLD static bool stack_is_deep(uintptr_t stack)
{
	int saved_errno = errno;

	if (stack_limit == UINTPTR_MAX) {
		pthread_attr_t attributes;
		void *low;
		size_t bytes;

		stack_limit = 0;
		if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
			if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
				stack_low = (uintptr_t)low;
				stack_limit = stack_low + bytes / 8 * 5;
			}
			pthread_attr_destroy(&attributes);
		}
	}
	errno = saved_errno;
	/* Below its end it is a stack of somebody's own making, of which nothing is known. */
	return stack < stack_limit && stack >= stack_low;
}

/*
 * Deep recursion. With any hook each Python call takes C stack, which it does not from 3.11 on without
 * one. So where three eighths of the stack are used the hook steps aside until this call returns: the
 * interpreter then recurses as it does without us, and raises RecursionError where it would.
 */
TARE_COLD static void *eval_deep(void *python_thread, void *frame, int throwflag)
{
	static bool told;

	if (python.get_eval(python.interpreter) != frame_hook)
		return python.eval_default(python_thread, frame, throwflag);
	if (!told) {
		told = true;
		tare_note_layer(
			"frames.deep", 0,
			"calls at more than 3/8 of a thread's stack, and all others meanwhile, are not seen");
	}
	python.set_eval(python.interpreter, python.eval_default);
	void *result = python.eval_default(python_thread, frame, throwflag);
	if (python.get_eval(python.interpreter) == python.eval_default)
		python.set_eval(python.interpreter, frame_hook);
	return result;
}

/* What of a thread's state belongs to the frame around. */
struct around {
	void *frame;
	uintptr_t stack;
	uint32_t code;
	uint32_t op_base, op_count, section_open;
};

/*
 * The frame that leaves is not the one that the thread's state is about. Either a greenlet was switched
 * in between: what is open above is another's, and goes on unseen. Or, with no frame known, this is a
 * forked child that returns from what its parent called. Of the frame around nothing is known: the next
 * site says where it is.
 */
TARE_COLD static void leave_unknown(struct tare_thread *thread, uint64_t now, uint32_t depth,
				    uint64_t result, const struct around *around)
{
	struct trace_buffer *buffer = thread->buffer;

	if (!((uintptr_t)thread->frame & ~FRAME_IS_NOT_CODE)) {
		trace_leave(buffer, now, depth, result);
	} else if (buffer->depth > depth) {
		buffer->depth = depth;
		trace_put(buffer, now, LEAVE_TO, depth);
	}
	thread->frame = NULL;
	thread->code = 0;
	thread->stack = around->stack;
	if (thread->op_count > around->op_count)
		thread->op_count = around->op_count;
	thread->op_base = around->op_base < thread->op_count ? around->op_base : thread->op_count;
	thread->section_open = 0;
}

TARE_HOT static void *frame_hook(void *python_thread, void *frame, int throwflag)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	struct tare_thread *thread;

	if (tare_unlikely(stack < stack_limit) && stack_is_deep(stack))
		return eval_deep(python_thread, frame, throwflag);
	thread = tare_begin(TARE_SOURCE_FRAME);
	if (tare_unlikely(!thread))
		return evaluate(python_thread, frame, throwflag);
	tare_close_ops(thread, (void *)stack);
	void *code_object = python_frame_code(frame);
	uint32_t code = code_known(code_object);
	if (tare_unlikely(!code) && !(code = code_define(thread, code_object))) {
		tare_end(thread);
		return evaluate(python_thread, frame, throwflag);
	}
	/* The caller's: this frame is not current yet. */
	const void *caller = python_current_frame(python_thread);
	uint64_t site;
	if (tare_likely(caller && caller == thread->frame))
		site = (uint64_t)(python_frame_offset(caller) + 1);
	else
		site = site_of_frame(thread, python_thread, caller, true);

	uint64_t distance = (thread->stack - stack) / HOW_DISTANCE_UNIT;
	if (distance > HOW_DISTANCE_MAX)
		distance = HOW_DISTANCE_MAX;
	struct trace_buffer *buffer = thread->buffer;
	uint32_t depth = buffer->depth;
	const struct around around = {
		.frame = thread->frame,
		.stack = thread->stack,
		.code = thread->code,
		.op_base = thread->op_base,
		.op_count = thread->op_count,
		.section_open = thread->section_open,
	};
	thread->frame = frame;
	thread->stack = stack;
	thread->code = code;
	thread->op_base = around.op_count;
	thread->section_open = 0;
	trace_enter(buffer, tare_now(), FRAME, code, site, distance << 1 | (throwflag != 0));
	tare_end(thread);

	void *result = evaluate(python_thread, frame, throwflag);

	uint64_t now = tare_now();
	if (tare_unlikely(!(thread = tare_begin_leave())))
		return result;
	if (tare_likely(((uintptr_t)thread->frame | FRAME_IS_NOT_CODE) ==
			((uintptr_t)frame | FRAME_IS_NOT_CODE))) {
		trace_leave(thread->buffer, now, depth, !result);
		thread->frame = around.frame;
		thread->stack = around.stack;
		thread->code = around.code;
		thread->op_base = around.op_base;
		thread->op_count = around.op_count;
		thread->section_open = around.section_open;
	} else {
		leave_unknown(thread, now, depth, !result, &around);
	}
	tare_end(thread);
	return result;
}

const char *eval_install(void)
{
	if (python.get_eval(python.interpreter) != python.eval_default)
		return "another evaluator of frames is installed (a debugger, or perf's trampoline)";
	python.set_eval(python.interpreter, frame_hook);
	return NULL;
}
