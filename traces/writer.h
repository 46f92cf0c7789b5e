/*
 * writer.h: writes a trace from inside the traced process.
 *
 * For preload/ and the event sources, and for tests that make traces. Nothing here allocates with
 * malloc, takes a lock, or uses stdio; memory comes from mmap. A trace_buffer belongs to one thread
 * at a time. All functions keep errno.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "traces/bytes.h"
#include "traces/layout.h"
#include "traces/machine.h"
#include "traces/schema.h"

/* Sizes of a slot's areas; ids take about twice as many bytes as times. */
#define TRACE_TIMES_ROOM (24u << 10)
#define TRACE_IDS_ROOM   ((40u << 10) - 256u)
#define TRACE_DEFS_ROOM  (64u << 10)
#define TRACE_SLOT_BYTES (128u << 10)
#define TRACE_SLOTS_MAX  4096u

/*
 * Clock units between two events of a thread, some 50 to 130 µs, from which on it looks whether recording
 * is over. Below that blocks are full soon.
 */
#define TRACE_LONG_STEP (1u << 16)

/* Room that is always left before a put: the largest event, or a few small ones. */
#define TRACE_TIME_RESERVE (4 * VARINT_BYTES_MAX)
#define TRACE_ID_RESERVE   (2 * TRACE_FIELDS_MAX * VARINT_BYTES_MAX)

/* What an event reads and writes comes first, in one cache line. */
struct trace_buffer {
	uint8_t *time_next, *id_next;
	uint8_t *times; /* start of the times that are written now; the ids lie behind, see trace_ids */
	struct trace_live *live;
	uint64_t last_time;
	uint32_t depth;  /* spans open now */
	uint32_t events; /* in this block */
	uint32_t thread; /* number of the thread that has this buffer; 0: none */
	bool stopped;    /* the file has stopped: what is put goes nowhere */
	bool others;     /* what is put is of others' time: writing a block is no event in it */
	struct trace_file *file;
	struct trace_live *mapping; /* the slot in the file; == live until stopped */
	uint8_t *defs;
	uint8_t *scratch; /* where a frame is put together */
	void *zstd;
	uint32_t slot;
	struct trace_live sink; /* stands for `live` once stopped */
};

struct trace_file {
	struct trace_header *header; /* the first page, mapped */
	uint64_t bytes; /* appended, or about to be by some thread; updated atomically */
	uint64_t max_bytes;
	uint64_t stop_at_ns; /* CLOCK_MONOTONIC; 0: never. Seen at a long step, or a full block */
	uint32_t threads;    /* numbers given so far, updated atomically */
	uint32_t clock_shift;
	bool clock_is_tsc;
	dev_t device;
	ino_t inode;
	char path[PATH_MAX];
	struct trace_buffer *slots[TRACE_SLOTS_MAX];
	uint32_t slots_taken[TRACE_SLOTS_MAX]; /* 1: in use; updated atomically */
	uint32_t slot_count;                   /* updated atomically */
};

/* Now on the trace's clock, in its units. */
static inline uint64_t trace_now(const struct trace_file *file)
{
	if (__builtin_expect(file->clock_is_tsc, 1))
		return machine_ticks() >> file->clock_shift;
	return machine_clock_ns(CLOCK_MONOTONIC);
}

/* Chooses the clock of `file` and returns the present moment on both clocks. Call first. */
struct trace_clock_pair trace_clock_start(struct trace_file *file);
struct trace_clock_pair trace_clock_pair(const struct trace_file *file);

/*
 * Whether the kernel has not given the counter up for a slower clock, as it does where those of the processors run
 * apart or one stops. `path`: of the file that names its clock; where there is none the counter is trusted.
 */
bool trace_ticks_trusted(const char *path);

/*
 * Creates the file `path` (absolute; must not exist) and maps its header. `load` is a clock pair taken
 * earlier. Where the kernel does not trust the counter the clock changes to CLOCK_MONOTONIC. Returns 0 or
 * an errno; on an error nothing stays behind, and `file` can be used again.
 */
int trace_file_create(struct trace_file *file, const char *path, struct trace_clock_pair load);

/* A forked child: forgets the file, without touching what the parent shares with it. */
void trace_file_forget(struct trace_file *file);

/*
 * The same where fork was called, by a signal handler, in the middle of our own code: all stays mapped
 * for what will go on there, but is the child's alone and stopped.
 */
void trace_file_disown(struct trace_file *file);

/* Notes in the header how recording ended. Only the first reason is kept. */
void trace_file_stop(struct trace_file *file, enum trace_stop reason, int error);
void trace_file_end(struct trace_file *file, enum trace_end how);
void trace_file_lost(struct trace_file *file, uint64_t events);
/* Of a thread nothing is recorded. */
void trace_file_unseen(struct trace_file *file);

/* Whether any file may have so many bytes: else SIGXFSZ would kill the program. */
bool trace_limit_allows(uint64_t bytes);

static inline bool trace_file_stopped(const struct trace_file *file)
{
	return __atomic_load_n(&file->header->stopped, __ATOMIC_RELAXED) != TRACE_STOP_NONE;
}

/*
 * A buffer for the calling thread, whose first event comes now with `depth` spans already open.
 * Writes its THREAD record. NULL where there is no room: then nothing is recorded for it.
 */
struct trace_buffer *trace_buffer_acquire(struct trace_file *file, uint32_t depth);

/*
 * A buffer for events that belong to no thread, whose times may lie in the past, since
 * `first_time`. Its user sees to it that one thread at a time puts, and that times do not go backwards.
 */
struct trace_buffer *trace_buffer_acquire_others(struct trace_file *file, const char *name,
						 uint64_t first_time);

/* The thread ends: writes its last block and gives the slot to the next thread. */
void trace_buffer_release(struct trace_buffer *buffer);

/* Writes the block as a frame and starts the next one. Called by the puts when a stream is full. */
void trace_buffer_flush(struct trace_buffer *buffer);

/*
 * Between two events lies a long time, or a negative one: returns it as it is to be written. Stops
 * where recording is over.
 */
uint64_t trace_buffer_long_step(struct trace_buffer *buffer, uint64_t step);

/* Adds a record (a struct record_NAME) to the definitions. Returns false where it was not kept. */
bool trace_define(struct trace_buffer *buffer, unsigned type, const void *record);

static inline uint8_t *trace_ids(const struct trace_buffer *buffer)
{
	return buffer->times + TRACE_TIMES_ROOM;
}

/* Returns whether the block is to be written out now. */
static inline __attribute__((always_inline)) bool trace_put_event(struct trace_buffer *buffer,
								  uint64_t now, unsigned code,
								  const uint64_t *fields,
								  unsigned count)
{
	uint64_t step = now - buffer->last_time;

	if (__builtin_expect(step >= TRACE_LONG_STEP, 0))
		step = trace_buffer_long_step(buffer, step);
	buffer->last_time += step;
	uint8_t *time = put_varint_short(buffer->time_next, step);
	uint8_t *id = put_varint(buffer->id_next, fields[0] << TRACE_CODE_BITS | code);
	for (unsigned i = 1; i < count; i++)
		id = put_varint(id, fields[i]);
	buffer->time_next = time;
	buffer->id_next = id;
	buffer->events++;
	/* Makes it visible to a reader of the file: one aligned store, after the contents. */
	uint64_t times = (uint64_t)(time - buffer->times), ids = (uint64_t)(id - trace_ids(buffer));
	__atomic_store_n(&buffer->live->lengths, times | ids << 32, __ATOMIC_RELEASE);
	return __builtin_expect(times >= TRACE_TIMES_ROOM - TRACE_TIME_RESERVE ||
					ids >= TRACE_IDS_ROOM - TRACE_ID_RESERVE,
				0);
}

/*
 * trace_put(buffer, now, NAME, field, ...): one event that opens nothing.
 * trace_enter(buffer, now, NAME, field, ...): opens a span; take buffer->depth before, for the leave.
 */
#define trace_put(buffer, now, NAME, ...)                                                          \
	do {                                                                                       \
		const uint64_t trace_fields_[] = { __VA_ARGS__ };                                  \
		_Static_assert(sizeof(trace_fields_) / sizeof(uint64_t) == TRACE_FIELDS_##NAME,    \
			       "fields of " #NAME);                                                \
		if (trace_put_event(buffer, now, TRACE_##NAME, trace_fields_,                      \
				    TRACE_FIELDS_##NAME))                                          \
			trace_buffer_flush(buffer);                                                \
	} while (0)

#define trace_enter(buffer, now, NAME, ...)                                                        \
	do {                                                                                       \
		(buffer)->depth++;                                                                 \
		trace_put(buffer, now, NAME, __VA_ARGS__);                                         \
	} while (0)

/*
 * Ends the span that was opened at `depth` (the buffer's depth just before its enter). Says so when
 * others are still open above it; does nothing when it is not open in this trace.
 */
static inline __attribute__((always_inline)) void
trace_leave(struct trace_buffer *buffer, uint64_t now, uint32_t depth, uint64_t result)
{
	if (__builtin_expect(buffer->depth == depth + 1, 1)) {
		buffer->depth = depth;
		trace_put(buffer, now, LEAVE, result);
	} else if (buffer->depth > depth) {
		buffer->depth = depth;
		trace_put(buffer, now, LEAVE_TO, depth);
	}
}
