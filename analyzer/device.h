/*
 * device.h: what devices did, from CUPTI's records: busy and idle, why idle, kernels, and whose they were.
 *
 * For analyzer/'s model: walk.c brings the events, waits.c tells of waits, loops.c of loops. A device's time is
 * that of the union of what ran on it. Idle time has the cause that kept back what ended it; see
 * docs/words.md. Nothing of it is known without the layer gpu.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/histogram.h"
#include "traces/reader.h"

struct model;
struct model_thread;

#define DEVICES_MAX 16u

/* Why a device was idle. CAUSE(name, title): in the JSON name_ns. */
#define DEVICE_CAUSES(CAUSE)                                                                       \
	CAUSE(host, "idle, waiting for the host")                                                  \
	CAUSE(synchronise, "idle, behind a synchronise")                                           \
	CAUSE(copy, "idle, behind a copy that the host waited for")                                \
	CAUSE(launch, "idle, work on its way")                                                     \
	CAUSE(unknown, "idle, of a cause not seen")

enum device_cause {
#define CAUSE_(name, title) DEVICE_IDLE_##name,
	DEVICE_CAUSES(CAUSE_)
#undef CAUSE_
		DEVICE_CAUSE_COUNT,
};

/* In clock units; all but in_flight add up to `wall`, with `kernel` and `copy` apart. */
struct device_times {
	double wall, kernel, copy, idle[DEVICE_CAUSE_COUNT];
	double in_flight; /* from launch to end, of all work: by wall the mean depth of the queue */
	double delay;     /* of kernels, from launch to start */
	double kernels, copies, sets, graphs;
};

struct device_name {
	uint64_t count, sum;
	struct histogram durations;
};

/* Of a row of the operator table. */
struct device_row {
	uint64_t kernels, works; /* all that ran because of it; works: kernels too */
	uint64_t sum;            /* clock units */
	struct histogram delays; /* of kernels */
};

/* A loop that may come to be the main loop was run. */
struct device_window {
	uint32_t node;
	uint64_t start, end;
};

struct device_launch;
struct device_line;

struct devices {
	struct device_launch *launches; /* by correlation, the newest; NULL: none yet */
	struct device_line *lines[DEVICES_MAX];
	struct device_name *kernels, *graphs; /* by index of string; by number of graph */
	uint32_t kernel_room, graph_room;
	struct device_row *rows; /* as op_table.rows */
	uint32_t row_room;
	struct device_window *windows;
	uint32_t window_count, window_room;
	uint64_t begin, end; /* of what was recorded; begin 0: nothing, end 0: to the end */
	uint64_t calls,
		matched;    /* calls with a correlation; of them those that a device followed */
	uint64_t unmatched; /* device work whose call is not known */
	uint64_t late;      /* came too late to be put in order */
	uint64_t overhead, overheads; /* CUPTI's own, on the host */
};

/* CORRELATION: the innermost call of the thread has that number. */
void device_called(struct model *model, struct model_thread *thread, uint64_t correlation,
		   uint64_t now);

/* Events of a device, in the order of their own times as far as possible. */
void device_batch(struct model *model, const struct trace_batch *batch);

/* A call of that thread waited until `now`; `copy`: for a copy. finding 0: none. */
void device_waited(struct model_thread *thread, bool copy, uint32_t finding, uint64_t now);

/* A run of a loop of the main thread. */
void device_window(struct model *model, uint32_t node, uint64_t start, uint64_t end);

void device_finish(struct model *model);
void device_free(struct devices *devices);

/* Whether the trace tells of devices. */
static inline bool device_known(const struct devices *devices)
{
	return devices->begin != 0;
}

/*
 * At the end: times of a device in all runs of a loop, or (LOOP_NONE) as long as it was recorded. False:
 * that device did nothing, or was not recorded all along.
 */
bool device_times_of(const struct model *model, unsigned device, uint32_t node,
		     struct device_times *times);
