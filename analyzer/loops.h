/*
 * loops.h: which loops a thread is in, and which pass of them, while its events are followed.
 *
 * For walk.c and context.c, which tell it what happens, and waits.c, which asks; mainloop.h chooses among
 * the loops at the end. A pass is one turn. A new one is seen where an event lies at a lower offset than
 * the one before in the same activation of the function. At the same offset it is one only where the
 * interpreter itself entered the frame, which an instruction does once: sorted, map, constructors and
 * operators may make any number of events in one call. Generators go on where they left off.
 *
 * Loops are told apart by the loops around them, in whatever functions: they form a tree, whose size
 * does not depend on the trace's length.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/bytecode.h"
#include "analyzer/graph.h"
#include "analyzer/hash.h"
#include "analyzer/histogram.h"
#include "analyzer/optable.h"
#include "analyzer/ledger.h"

struct model;
struct model_thread;
struct span;
struct trace_reader;

#define LOOP_NODES_MAX   (1u << 16)
#define LOOP_OWN_MAX     64
#define LOOP_UNSURE_MAX  32
#define LOOP_MODULES_MAX 8

enum { LOOP_NONE, LOOP_MAIN_THREAD, LOOP_OTHER_THREADS, LOOP_FIRST };

struct loop_node {
	uint32_t parent; /* below LOOP_FIRST: of no loop, on that thread */
	uint32_t code, loop;
	uint32_t depth;
	uint32_t open; /* runs that are; of recursion several */
	uint64_t runs, passes;
	uint64_t first;  /* when it was first entered */
	uint64_t time;   /* of its runs, clock units, since the start-up, without imports */
	uint64_t weight; /* of it, what tare took */
	struct histogram pass_times;
	uint64_t first_pass; /* of them the first, what was start-up left out */
	/* Of the process, in its runs: where it may be the main loop. */
	struct account account;
	bool account_known, account_missed;
	struct graph_loop graph; /* of the same runs */
	uint32_t row_count;      /* at the end: operators by place seen in it, or further in */
	uint32_t row_last;       /* of them the last that was counted */
	/* Offsets + 1 of events directly in it, and of those that may or may not have been passes. */
	uint64_t own_seen;
	uint32_t own[LOOP_OWN_MAX], own_count;
	uint32_t unsure[LOOP_UNSURE_MAX], unsure_count;
	/* What its passes call directly, not in a loop further in: functions of modules, an optimizer's step. */
	uint32_t modules[LOOP_MODULES_MAX], module_count;
	bool optimizes;
	bool in_step; /* lies in a module's call or an optimizer's step, which is in the loop around */
	bool doubtful_end; /* a generator was left with nothing but asking its iterator */
	bool has_inner;    /* a loop of the same function lies in it */
	bool passes_known; /* at the end */
	bool launches;     /* at the end: an operator in it launches */
};

/* A loop that a thread is in. */
struct loop_run {
	uint32_t node, loop;
	uint32_t frame; /* its place on the stack */
	uint64_t entered, pass_start;
	uint64_t entered_weight; /* the thread's weight then */
	uint64_t pass_weight;    /* what tare had taken on the thread when the pass began */
	uint64_t pass;           /* number of its present pass in the node: threads may share one */
	uint64_t imports;        /* of the main thread, until it was entered */
	struct graph_mark graph;
	bool accounted; /* the process's account as of `entered` is in the thread's marks */
	bool recursive; /* the node has another run around */
	bool direct; /* the newest event's instruction began with a frame that was entered directly */
	bool fresh; /* nothing happened in it yet */
	bool asked; /* nothing happened in this pass but that the iterator was asked */
	bool aside; /* an exception's handler ran since */
};

struct loop_carry {
	uint32_t thread, last, loop; /* of the newest activation of a generator; thread 0: none */
};

/* Calls of a row of the operator table while `node` was the innermost loop. */
struct loop_cell {
	uint32_t node, next;
	uint64_t calls;
	struct op_sum sum;
};

struct loops {
	struct loop_node *nodes; /* from LOOP_FIRST */
	uint32_t count, room;
	struct hash_table index;
	struct loop_carry *carries; /* as definitions.codes */
	uint32_t *row_cells;        /* by row of the operator table: a list */
	uint32_t row_room;
	struct loop_cell *cells; /* from 1 */
	uint32_t cell_count, cell_room;
	uint32_t direct; /* the distance of a frame that the interpreter entered, as in FRAME */
};

enum loop_event { LOOP_EVENT_DIRECT, LOOP_EVENT_OTHER };

/* Reads the first events of the trace for what is peculiar to its interpreter. */
void loops_start(struct model *model, struct trace_reader *reader);
void loops_free(struct loops *loops);

/* An event at `site` (offset + 1) of a frame whose code has loops. */
void loops_event(struct model *model, struct model_thread *thread, struct span *frame,
		 uint32_t site, enum loop_event what, uint64_t now);

/* The innermost frame ends; it was in loops. */
void loops_left(struct model *model, struct model_thread *thread, uint64_t now);

/* `caller` calls a frame of that code; one of them is part of a step. */
void loops_step(struct model *model, const struct model_thread *thread, const struct span *caller,
		uint32_t code);

/* A call that belongs to that row of the operator table has ended. `sample`: its times; NULL: they do not count. */
void loops_operator(struct model *model, struct model_thread *thread, uint32_t row,
		    const struct op_sample *sample);

/* What came before was start-up. */
void loops_startup(struct model *model, uint64_t now);

void loops_finish(struct model *model, uint64_t end);

/* Whether `node` is that loop or lies in it. */
bool loops_is_in(const struct loops *loops, uint32_t node, uint32_t outer);

/* At the end: how many calls of a row of the operator table were in that loop, or further in. */
uint64_t loops_calls(const struct loops *loops, uint32_t row, uint32_t node);

/* The parts of such calls, added to `parts`; returns of how many, the rest does not count. */
uint64_t loops_parts(const struct loops *loops, const struct op_table *table, uint32_t row,
		     uint32_t node, double parts[OP_PART_COUNT]);
