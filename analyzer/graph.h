/*
 * graph.h: whether the passes of a loop could be replayed as a CUDA graph, and what stands in the way.
 *
 * For walk.c and loops.c, which count while a trace is read, and cmd_*.c at the end. Told is only what
 * the calls show: launches, their order, waits, allocations. Shapes, addresses and values that change from
 * pass to pass are not in a trace, so nothing here ever says that a loop can be captured.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct model;
struct model_thread;
struct loop_node;
struct syncs;

#define GRAPH_SEQUENCES 8 /* of launches in a pass that are told apart */

/* Of the process, since the trace began; in a loop: of its passes. Launches within a capture run nothing. */
struct graph_counts {
	uint64_t launches;       /* all of these */
	uint64_t graphs;         /* whole graphs */
	uint64_t host_functions; /* on the host, when their stream has got there */
	uint64_t default_stream; /* on the legacy default stream */
	uint64_t captures;       /* begun */
};

/* Of all launches so far: a polynomial hash, so that those of a pass have one of their own. */
struct graph_launches {
	struct graph_counts counts;
	uint64_t hash;
};

/* Where a loop's run, and its pass, began. */
struct graph_mark {
	struct graph_counts run;
	uint64_t pass_launches, pass_hash;
};

struct graph_sequence {
	uint64_t hash, launches, passes;
};

/* What a loop's passes launched. */
struct graph_loop {
	struct graph_counts counts;
	struct graph_sequence sequences[GRAPH_SEQUENCES];
	uint32_t sequence_count;
	uint64_t passes, launches_least, launches_most; /* of passes looked at */
};

/* A launch of `function` by the thread, in its innermost operator; the begin of a capture. */
void graph_launched(struct model *model, const struct model_thread *thread, uint32_t function,
		    uint64_t stream);

void graph_run_begins(const struct graph_launches *launches, struct graph_mark *mark);
void graph_pass_ends(const struct graph_launches *launches, struct graph_mark *mark,
		     struct loop_node *node);
void graph_run_ends(const struct graph_launches *launches, const struct graph_mark *mark,
		    struct loop_node *node);

/* Of the main loop; null and nothing where it has no known passes, or launches nothing. */
json_t *graph_json(const struct syncs *syncs);
void graph_print(const struct syncs *syncs);
