/*
 * What the files of the core share among themselves. Front ends include sim.h only.
 *
 * One lock guards devices, streams, events, captures and graphs. It is never held while waiting
 * for the device, while copying, or while a host function runs.
 */
#ifndef TARE_SIM_CORE_H
#define TARE_SIM_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include "sim.h"

enum { SIM_MAX_DEVICES = 16 };

struct sim_stream {
	unsigned magic;
	int device, priority;
	bool nonblocking;
	bool legacy; /* the device's NULL stream */
	unsigned long long id;
	uint64_t busy_until;
	uint64_t *queue; /* when the last QUEUE operations end, by number */
	uint64_t submitted;
	unsigned host_calls; /* host functions that have not returned */
	struct sim_capture *capture;
	uint64_t capture_ns; /* in the capture's own time */
	struct sim_stream *capture_next;
};

struct sim_event {
	bool timing, recorded;
	uint64_t time;
	struct sim_capture *capture; /* recorded in this capture, at capture time `time` */
	unsigned long long capture_id;
};

struct sim_device {
	struct sim_stream legacy;
	uint64_t busy_until;     /* of all its streams */
	uint64_t blocking_until; /* of those that the NULL stream waits for */
	size_t memory_used;
	struct cell *waiter; /* the last call that waited for it, until something is submitted */
	uint64_t waited;     /* when that ended */
};

struct core {
	pthread_mutex_t lock;
	pthread_cond_t host_call_done;
	struct sim_device devices[SIM_MAX_DEVICES];
	unsigned long long next_id;
	_Atomic bool used; /* something was submitted or allocated */
	bool forked;       /* ... by our parent: this process may do nothing */
};

extern struct core core;

static inline void core_lock(void)
{
	pthread_mutex_lock(&core.lock);
}

static inline void core_unlock(void)
{
	pthread_mutex_unlock(&core.lock);
}

/*
 * Looks name up in a "key:number,..." list. A key is the whole name, or any part of it; the first
 * that fits counts.
 */
bool core_table_find(const char *table, const char *name, bool whole, double *value);

static inline void core_use(void)
{
	if (!atomic_load_explicit(&core.used, memory_order_relaxed))
		atomic_store_explicit(&core.used, true, memory_order_relaxed);
}

uint64_t core_now(void);
/* Waits for a moment of the device's time and books the wait on the call in progress. */
void core_wait_until(uint64_t when);
/* The call in progress has waited: that the device has nothing to do from now on is booked on it. */
void core_waited(int device);
void core_busy_wait(uint64_t until);

/* With the lock held: appends an operation at the time `now`, returns when it ends. */
uint64_t core_append(struct sim_stream *s, uint64_t now, uint64_t ns);
/* With the lock held, which it may drop: waits until the launch queue has room; the time then. */
uint64_t core_queue_room(struct sim_stream *s);
/* With the lock held: when all that a synchronise of this stream waits for has ended. */
uint64_t core_stream_end(const struct sim_stream *s);

/* With the lock held, which is dropped while bytes move: does work that ends at `end`. */
void core_work_run(struct sim_stream *s, const struct sim_work *work, uint64_t end);

/*
 * Device memory gets addresses of its own where that is possible, so that a pointer to it can be
 * told from all others at a glance.
 */
#define CORE_ARENA       ((uintptr_t)0x200000000000)
#define CORE_ARENA_BYTES ((uintptr_t)1 << 44)

/* With the lock held: the values there are the program's own, or are not known. */
void core_values_set(const void *p, size_t bytes);
void core_values_forget(const void *p, size_t bytes);
bool core_values_known(const void *p, size_t bytes);
void core_values_touched(const struct sim_touched *t);

/* With the lock held: call arg at `when`, on the host-function thread. */
void core_host_call(struct sim_stream *s, uint64_t when, void (*call)(void *), void *arg);
void core_host_calls_wait(struct sim_stream *s);

/* With the lock held: the stream is capturing, so record the work. */
int core_capture_add(struct sim_stream *s, const struct sim_work *work);
/* With the lock held, in a graph: work that starts `offset` after the graph does. */
int core_graph_add(struct sim_graph *g, const struct sim_work *work, uint64_t offset);
int core_capture_event_record(struct sim_event *e, struct sim_stream *s);
int core_capture_event_wait(struct sim_stream *s, struct sim_event *e);
/* With the lock held: breaks the capture of s, if any; 900 then, else 0. */
int core_capture_break(struct sim_stream *s);
/* With the lock held: the stream goes away, which breaks the capture. */
void core_capture_leave(struct sim_stream *s);

/* A call that may wait, for TARE_SIM_LINES. */
bool core_lines_on(void);
void core_lines_add(const char *function, int column, size_t bytes, bool pageable);
/* The function that the calling thread is in. */
const char *core_called(void);

void core_lines_forked(void);
/* Waits for what is on a stream, as a synchronous copy does. */
int core_stream_wait(struct sim_stream *s);

/* With the lock held: work, of a graph's node where there is one, that ends at `end`. */
void core_observe_work(const struct sim_stream *s, const struct sim_work *work, uint64_t end,
		       uint32_t graph, uint64_t node);
/* With the lock held: a launch of a graph. */
void core_observe_graph(const struct sim_stream *s, uint64_t start, uint64_t end, uint32_t graph);
/* Without it: the calling thread waited since `start`. s may be NULL. */
void core_observe_sync(enum sim_sync sync, const struct sim_stream *s, uint64_t start);

void core_count_forked(void);
void core_count_wait(uint64_t ns);
/* Where the call in progress is counted. */
struct cell *core_count_call(void);
void core_count_idle(struct cell *waited, uint64_t ns);
void core_memory_forked(void);
void core_capture_forked(void);
void core_host_forked(void);

#endif
