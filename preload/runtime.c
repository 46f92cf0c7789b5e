/*
 * runtime.c: the threads of the traced process, and small services for event sources, see runtime.h.
 */
#include "preload/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/process.h"
#include "preload/stacks.h"

__thread struct tare_tls tare_tls;
struct tare_process tare_process;
uint32_t tare_generation = 1;
uint32_t tare_string_ids, tare_function_ids;
uint64_t (*tare_python_site)(struct tare_thread *thread, void *python_thread, bool gil_held);
bool (*tare_op_runs)(struct tare_thread *thread, const struct tare_open_op *op,
		     const void *frame_address);

/* Spans that were open in the thread that forked: the child's first event is inside of them. */
static __thread uint32_t inherited_depth __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_key;

/*
 * Ours was the first key to be made, so this runs before all other destructors of its round: wait for
 * the next round, so that their calls are recorded too.
 */
static void thread_end(void *value)
{
	struct tare_thread *thread = value;

	if (!thread->ends) {
		thread->ends = true;
		pthread_setspecific(thread_key, thread);
		return;
	}
	/* A thread that was cancelled in our own code left its block half done: it stays as it is. */
	if (tare_tls.state != TARE_INSIDE) {
		tare_tls.state = TARE_INSIDE;
		trace_buffer_release(thread->buffer);
	}
	tare_tls.state = TARE_DEAD;
	tare_tls.thread = NULL;
	stacks_thread_end(thread);
	munmap(thread, sizeof(*thread));
}

/* Early, so that setting the value never has to allocate: glibc keeps the first 32 in the thread. */
void thread_set_up(void)
{
	pthread_key_create(&thread_key, thread_end);
}

/* Nothing of this thread will be recorded: the trace must not look as if it were whole. */
static void thread_unseen(void)
{
	if (!trace_file_stopped(&tare_process.file))
		trace_file_unseen(&tare_process.file);
}

static struct tare_thread *thread_start(void)
{
	struct tare_thread *thread;
	bool first;

	if (!process_open(&first))
		return NULL;
	thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (thread == MAP_FAILED) {
		thread_unseen();
		return NULL;
	}
	thread->buffer = trace_buffer_acquire(&tare_process.file, inherited_depth);
	if (!thread->buffer || pthread_setspecific(thread_key, thread) != 0) {
		if (thread->buffer)
			trace_buffer_release(thread->buffer);
		munmap(thread, sizeof(*thread));
		thread_unseen();
		return NULL;
	}
	if (first)
		process_describe(thread->buffer);
	notes_write(thread->buffer);
	return thread;
}

void thread_fork_child(bool inside)
{
	struct tare_thread *thread = tare_tls.thread;

	pthread_setspecific(thread_key, NULL);
	if (inside) {
		trace_file_disown(&tare_process.file);
		return;
	}
	if (thread) {
		inherited_depth = thread->buffer->depth;
		stacks_thread_end(thread);
		munmap(thread, sizeof(*thread));
		tare_tls.thread = NULL;
	}
	trace_file_forget(&tare_process.file);
}

static bool may_begin(enum tare_source source)
{
	switch (process_mode()) {
	case PROCESS_RECORDS: return true;
	case PROCESS_WAITS: return source != TARE_SOURCE_FRAME;
	case PROCESS_IDLE: return source == TARE_SOURCE_CUDA || source == TARE_SOURCE_ALLOCATION;
	case PROCESS_UNSTARTED:
	case PROCESS_OFF: break;
	}
	return false;
}

static bool is_delayed(void)
{
	uint64_t delay_ns = process.knobs.delay_ns;

	return delay_ns && machine_clock_ns(CLOCK_MONOTONIC) < process.load.monotonic_ns + delay_ns;
}

TARE_COLD struct tare_thread *tare_begin_slow(enum tare_source source)
{
	struct tare_thread *thread = tare_tls.thread;
	int saved_errno = errno;

	if (tare_tls.state != TARE_NEW || !may_begin(source))
		return NULL;
	bool delayed = is_delayed();
	if (delayed && source != TARE_SOURCE_ALLOCATION)
		return NULL;
	tare_tls.state = TARE_INSIDE;
	if (!thread) {
		int cancelable;

		/* Opening files is a cancellation point, which the hooked call may not be. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelable);
		thread = tare_tls.thread = thread_start();
		pthread_setcancelstate(cancelable, NULL);
	}
	if (thread)
		thread->rest = delayed ? TARE_NEW : TARE_ON;
	else
		tare_tls.state = TARE_OFF;
	errno = saved_errno;
	return thread;
}

/* During TARE_DELAY a thread with a buffer is NEW between events; only allocations were entered. */
TARE_COLD struct tare_thread *tare_begin_leave_slow(void)
{
	if (tare_tls.state != TARE_NEW || !tare_tls.thread)
		return NULL;
	tare_tls.state = TARE_INSIDE;
	return tare_tls.thread;
}

/*
 * The outermost that is over decides: all within it are too, even where the stack still holds what
 * they left there. Else the innermost that runs: all around it do too.
 */
TARE_HOT uint32_t tare_ops_over(struct tare_thread *thread, const void *frame_address)
{
	uint32_t over = 0;

	for (uint32_t i = thread->op_base; i < thread->op_count; i++) {
		const struct tare_open_op *op = &thread->ops[i];

		/* The word lies above the operator's frame: it is looked at only where that is in use. */
		if ((uintptr_t)frame_address >= op->frame || (op->word && *op->word != op->value)) {
			over = thread->op_count - i;
			thread->op_count = i;
			break;
		}
	}
	while (tare_op_runs && thread->op_count > thread->op_base &&
	       !tare_op_runs(thread, &thread->ops[thread->op_count - 1], frame_address)) {
		thread->op_count--;
		over++;
	}
	return over;
}

uint32_t tare_next_id(uint32_t *counter)
{
	return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

void tare_verbose(const char *first, const char *second)
{
	int saved_errno = errno;
	struct iovec pieces[] = {
		{ (void *)"tare: ", 6 },
		{ (void *)first, strlen(first) },
		{ (void *)second, strlen(second) },
		{ (void *)"\n", 1 },
	};

	if (tare_process.verbose && writev(STDERR_FILENO, pieces, 4) < 0)
		errno = 0;
	errno = saved_errno;
}
