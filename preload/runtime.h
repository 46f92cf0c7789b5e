/*
 * runtime.h: what an event source needs inside the traced process.
 *
 * For preload/, pyhooks/, torchhooks/, cupti/. The rules here hold for every function that is
 * reached from a hook:
 *
 *  1. Never exit, abort, assert, raise a signal, print, or change a result. On trouble: stop
 *     recording, count it, go on with the program.
 *  2. errno and CUDA's last error leave a wrapper as the real call left them. No CUDA call of our own.
 *  3. No malloc, stdio, lock or formatted text between enter and leave.
 *  4. Nothing of ours is held across the real call: not INSIDE, no lock.
 *  5. The enter is written before the real call, so that a blocked call is in the trace.
 *  6. Frees are recorded before the call, allocations (their RESULT) after.
 *
 * The pattern:
 *
 *	struct tare_thread *thread = tare_begin(TARE_SOURCE_CUDA);
 *	uint32_t depth = 0;
 *	if (thread) {
 *		depth = thread->buffer->depth;
 *		tare_close_ops(thread, __builtin_frame_address(0));
 *		trace_enter(thread->buffer, tare_now(), CALL, function, tare_site(thread));
 *		tare_end(thread);
 *	}
 *	result = real(...);
 *	if (thread && (thread = tare_begin_leave())) {
 *		trace_leave(thread->buffer, tare_now(), depth, result);
 *		tare_end(thread);
 *	}
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "traces/knobs.h"
#include "traces/writer.h"

#define TARE_EXPORT __attribute__((visibility("default")))
#define TARE_COLD   __attribute__((cold, noinline))
/* For what most events run through: such functions lie together, on few pages. */
#define TARE_HOT         __attribute__((hot))
#define tare_likely(x)   __builtin_expect(!!(x), 1)
#define tare_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Who asks to record: decides whether it may start recording in a process that waits for its first op.
 * ALLOCATION is CUDA for calls after which memory is known to be pinned or managed, or no longer: they
 * are recorded during TARE_DELAY too.
 */
enum tare_source {
	TARE_SOURCE_FRAME,
	TARE_SOURCE_OP,
	TARE_SOURCE_CUDA,
	TARE_SOURCE_ALLOCATION,
};

/* All reasons to leave the fast path are one byte. Zero is what a new thread starts with. */
enum tare_state {
	TARE_NEW = 0, /* nothing recorded yet in this thread, or recording has not begun */
	TARE_ON,      /* records */
	TARE_INSIDE,  /* in our own code: re-entry passes through */
	TARE_OFF,     /* never records again in this process */
	TARE_DEAD,    /* the thread's slot is given back */
};

/* An operator that was entered and not yet found to be over, see torchhooks/. */
struct tare_open_op {
	const uintptr_t
		*word;   /* stack word that holds the dispatcher's return address; NULL: unknown */
	uintptr_t value; /* what it held */
	uintptr_t frame; /* address of the tap's frame: at or above it, the operator is over */
};

#define TARE_OPEN_OPS_MAX 128u

/* An operator that RecordFunction reported, and has not ended yet, see torchhooks/. */
struct tare_op_span {
	const void *record; /* RecordFunction: tells which end belongs to it */
	uint32_t depth;     /* just before its enter */
};

/* A SECTION, or a CALLBACK out of one, that is open, see torchhooks/. */
struct tare_gil_span {
	uintptr_t frame;            /* address of the frame of the hook that opened it */
	uint32_t depth;             /* just before its enter */
	uint32_t op_base, op_count; /* this and the next: to be put back when it is left */
	uint32_t section_open;
	bool callback;
};

#define TARE_GIL_SPANS_MAX 64u

/* What a recording thread has, beyond its buffer. In mapped memory, zeroed at the thread's start. */
struct tare_thread {
	/* What most events want, in one cache line. */
	struct trace_buffer *buffer;
	uint8_t rest;           /* state between events: TARE_ON; TARE_NEW during TARE_DELAY */
	bool ends;              /* its thread is about to end */
	bool torch_thread_told; /* TORCH_THREAD is written */

	/* Frames: what the trace's reader believes is the innermost Python code, see pyhooks/. */
	uint32_t code; /* id of its code, or of the last AT; 0: unknown */
	void *frame;   /* interpreter frame of the innermost FRAME, or that | 1 where AT was last */
	uintptr_t stack;     /* C stack address of the innermost frame hook */
	void *python_thread; /* PyThreadState, once seen; NULL on threads that never ran Python */

	/* Operators (taps). */
	uint64_t next_sequence; /* torch's sequence number when last looked at, + 1; 0: not yet */
	uint32_t op_count;      /* open operators in `ops` */
	uint32_t op_base; /* of them, those that belong to spans further out: not to be closed now */
	uint32_t section_open; /* in a section or a node: sites are its own */
	uint32_t gil_count;    /* spans in `gil_spans` */

	/* CUDA. */
	int32_t device; /* current device as last told by DEVICE */
	uint32_t call; /* depth of the innermost open call of the CUDA runtime or driver; 0: none */
	uint32_t correlation;       /* the last that was told */
	struct tare_stacks *stacks; /* native ones that it had last, see stacks.c; NULL: none yet */

	uint32_t ranges_open; /* user ranges whose begin is in this trace */
	uint32_t op_span_count;
	struct tare_open_op ops[TARE_OPEN_OPS_MAX];
	struct tare_op_span op_spans[TARE_OPEN_OPS_MAX];
	struct tare_gil_span gil_spans[TARE_GIL_SPANS_MAX];
};

_Static_assert(offsetof(struct tare_thread, device) == 64, "as it says");

struct tare_tls {
	uint8_t state;          /* enum tare_state */
	bool libraries_changed; /* by dlopen in this thread; the sources do not know yet */
	struct tare_thread *thread;
};

extern __thread struct tare_tls tare_tls
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Of the process. Written at start-up and in a forked child only. */
struct tare_process {
	uint32_t layers; /* enum tare_layer bits that are on */
	bool verbose;
	struct trace_file file; /* of which the beginning, with the clock, shares a cache line */
} __attribute__((aligned(64)));

extern struct tare_process tare_process __attribute__((visibility("hidden")));

static inline uint64_t tare_now(void)
{
	return trace_now(&tare_process.file);
}

/* Slow path of tare_begin: starts the thread where it may. */
struct tare_thread *tare_begin_slow(enum tare_source source);

/*
 * Begins to record in this thread: NULL means pass through. In between, hooks that are re-entered pass
 * through. Ends with tare_end, before the real call is made.
 */
static inline __attribute__((always_inline)) struct tare_thread *tare_begin(enum tare_source source)
{
	if (tare_likely(tare_tls.state == TARE_ON)) {
		tare_tls.state = TARE_INSIDE;
		/* A signal handler that forks just before leaves no thread here. */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return tare_tls.thread;
	}
	return tare_begin_slow(source);
}

struct tare_thread *tare_begin_leave_slow(void);

/* The same on the way out of a span that was entered: never starts a thread. */
static inline __attribute__((always_inline)) struct tare_thread *tare_begin_leave(void)
{
	if (tare_unlikely(tare_tls.state != TARE_ON))
		return tare_begin_leave_slow();
	tare_tls.state = TARE_INSIDE;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return tare_tls.thread;
}

static inline __attribute__((always_inline)) void tare_end(struct tare_thread *thread)
{
	tare_tls.state = tare_unlikely(thread->buffer->stopped) ? TARE_OFF : thread->rest;
}

/*
 * Whether the innermost open operator still runs, where the stack's words do not tell. Set by torchhooks/
 * when it is installed.
 */
extern bool (*tare_op_runs)(struct tare_thread *thread, const struct tare_open_op *op,
			    const void *frame_address) __attribute__((visibility("hidden")));

/*
 * Slow path of tare_close_ops: how many of the innermost open operators are over. Takes them off
 * thread->ops.
 */
uint32_t tare_ops_over(struct tare_thread *thread, const void *frame_address);

/*
 * Before an event that may come after an operator's end: writes OP_OVER for those that are over.
 * `frame_address`: of the caller, __builtin_frame_address(0).
 */
static inline void tare_close_ops(struct tare_thread *thread, const void *frame_address)
{
	if (tare_unlikely(thread->op_count > thread->op_base)) {
		uint32_t over = tare_ops_over(thread, frame_address);

		if (over)
			trace_put(thread->buffer, tare_now(), OP_OVER, over);
	}
}

/*
 * The site for an event outside of a section: where the thread's Python code is, or 0. Set by pyhooks/
 * when it is installed; may write AT, CODE and LINES. `gil_held`: known to be, so code objects may be
 * defined. `python_thread`: PyThreadState; NULL: this thread's own. Not looked at where the GIL is held.
 */
extern uint64_t (*tare_python_site)(struct tare_thread *thread, void *python_thread, bool gil_held)
	__attribute__((visibility("hidden")));

static inline uint64_t tare_site(struct tare_thread *thread)
{
	return thread->section_open || !tare_python_site ? 0 :
							   tare_python_site(thread, NULL, false);
}

/*
 * Ids for records that a source defines: 1, 2, 3, ... in this process. A forked child goes on
 * counting: what was defined before the fork has to be defined again, see tare_generation.
 */
uint32_t tare_next_id(uint32_t *counter);

/* Counters of what several sources define. */
extern uint32_t tare_string_ids, tare_function_ids __attribute__((visibility("hidden")));

/* Changes when a forked child gets a trace of its own: definitions of another generation are not in it. */
extern uint32_t tare_generation __attribute__((visibility("hidden")));

/*
 * For `tare calibrate`: a source's kind of event, as CALIBRATION names it, and what makes one of it, enter and
 * leave, where the process ends. Returns the clock units between their times.
 */
typedef uint64_t tare_calibrate_one(struct tare_thread *thread);
void tare_calibrates(const char *kind, tare_calibrate_one *one);

/*
 * A CUDA function is about to be called, for the first time in this process or since a while: the device's
 * own activity can be recorded from here on. Called INSIDE, before the call's enter. In cupti/.
 */
void tare_cuda_called(void);

/* Set when what CUPTI holds back should be written; tare_device_flush does it. Not in the middle of a call. */
extern bool tare_device_flush_due __attribute__((visibility("hidden")));
void tare_device_flush(struct tare_thread *thread);

/* INFO and LAYER records. Kept and repeated in a forked child's trace. From any thread, INSIDE or not. */
void tare_note_info(const char *key, const char *value);
void tare_note_layer(const char *layer, unsigned state, const char *detail);

/* One line on stderr, if TARE_VERBOSE says so. No formatting beyond joining the pieces. */
void tare_verbose(const char *first, const char *second);

/*
 * The real function `name`, of that version (NULL: any), from `soname` where that is loaded, else from
 * the objects behind libtare.so, else from a copy of the library under another name. NULL where there is
 * none. Not on a hot path.
 */
void *tare_find_function(const char *soname, const char *version, const char *name);

/* What a reference without a version in the code at `caller` would be bound to, were it not for us. */
void *tare_find_for(const void *caller, const char *name);
