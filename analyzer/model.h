/*
 * model.h: what one pass over a trace makes of it: call tree, accounts, operator table.
 *
 * For analyzer/. walk.c follows the events of each thread, context.c finds what each operator took,
 * process_ledger.c tells whose time is the process's. Memory is bounded by distinct paths, places and
 * threads, not by the length of the trace.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/autograd.h"
#include "analyzer/calls.h"
#include "analyzer/calltree.h"
#include "analyzer/definitions.h"
#include "analyzer/device.h"
#include "analyzer/graph.h"
#include "analyzer/ledger.h"
#include "analyzer/loops.h"
#include "analyzer/optable.h"
#include "analyzer/raises.h"
#include "analyzer/waits.h"
#include "analyzer/weight.h"
#include "traces/reader.h"

/* An open span of a thread. The first of a thread's stack stands for the thread itself. */
struct span {
	/* Of all spans. The size is a power of two. */
	uint64_t enter;
	uint64_t child_end;    /* frames: when the last child ended, or the enter */
	uint64_t child_weight; /* what the account had of its slot's weight then */
	uint64_t inner;        /* taken by the spans below */
	uint32_t node;         /* of the call tree */
	uint32_t last_child;
	uint32_t slot;  /* of the accounts */
	uint8_t kind;   /* enum trace_event_code; TREE_KIND_NONE: the thread */
	uint8_t flags;  /* enum span_flags */
	uint8_t rate;   /* of the weights */
	uint8_t step;   /* frames: of `code` */
	uint32_t frame; /* the innermost frame on the stack, itself included; 0: none */
	uint32_t class; /* calls; 0: it has none */

	uint32_t code, site;            /* frames: the code that runs, the last site in it */
	uint32_t user_code, user_site;  /* frames: the nearest user frame around */
	const struct code_loops *loops; /* frames: of the code; NULL: none */
	uint32_t loop_last;   /* frames: the last site in a loop; 0: none in this activation */
	uint32_t run_first;   /* frames: of the thread's runs, the first that may be this frame's */
	bool user;            /* frames: `code` is the user's */
	bool two_calls;       /* frames: see code_call_site */
	bool thrown;          /* frames: entered to throw, such as to close a generator */
	bool importing;       /* in or below the interpreter's import machinery */
	uint16_t apart;       /* not frames: see weight_apart */
	uint64_t bytes;       /* calls: copied */
	uint64_t slot_mark;   /* calls: what the account had in `slot` before */
	uint64_t weight_mark; /* calls: of its weight */
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct span) == 128, "as it says");

enum span_flags {
	SPAN_LOOSE = 1, /* an operator of which no leave is recorded */
	SPAN_CALL = 2,
	SPAN_QUIET = 4,       /* no work of the program's: tare's own, or waiting for the GIL */
	SPAN_CONTEXT = 8,     /* begins the innermost context */
	SPAN_IN_CONTEXT = 16, /* an operator that is open in it */
	SPAN_LIBRARY = 32,    /* calls below belong to it */
	SPAN_LOOPS = 64,      /* a frame that was in loops */
	SPAN_IMPORT = 128,    /* the outermost frame of the import machinery */
};

/*
 * What is counted as one call of a top operator: a section, an operator or a call outside of sections,
 * a backward node. Contexts nest where Python runs in between.
 */
struct op_context {
	uint32_t span;  /* its place on the stack */
	uint32_t frame; /* of that span: operators in other frames are not its own */
	uint32_t open_ops;
	bool has_op, known;
	bool open_end; /* an operator of which no end is recorded, and nothing was seen in it */
	struct op_key key;
	uint32_t node; /* of the call tree: caches the row */
	uint64_t start, python;
	/* Framework and gil: at its start, and of contexts below. */
	uint64_t marks[2], inner[2];
	uint64_t launches;
	struct op_call *calls;
	uint32_t call_count, call_room;
};

struct open_range {
	uint32_t name;
	uint64_t start;
};

/* The newest exception of a thread: where it was counted, and when. */
struct raise_mark {
	uint32_t row;
	uint64_t spans; /* of the model */
	uint64_t units;
};

struct model_thread {
	uint32_t index;  /* of its definition */
	uint32_t number; /* in the trace */
	struct span *stack;
	uint32_t top, room;
	uint32_t base;        /* open spans below the stack, whose enters are not in the trace */
	uint32_t spans;       /* of the stack: those with a leave */
	uint32_t unseen;      /* above the stack, where it is full */
	uint64_t first, last; /* time of its first event; up to where it is accounted for */
	uint64_t lost_until;  /* the newest first event after lost ones; 0: none */
	struct op_context *contexts;
	uint32_t context_count, context_room;
	struct loop_run *runs; /* the loops it is in */
	uint32_t run_count, run_room;
	struct account *loop_marks; /* as runs: the process's account when they began */
	uint32_t loop_mark_room;
	struct open_range *ranges;
	uint32_t range_count, range_room;
	struct account account;
	/* Of the account's framework and gil: of threads that worked for it, and of its weight there. */
	uint64_t foreign[2], foreign_weight[2];
	uint64_t weight; /* what tare took of this thread's time, and of those that it waited for */
	uint64_t joined_weight, python_seen;
	uint64_t python_tare; /* spans of tare's own in Python code */
	uint64_t last_frame;  /* time of the newest frame's event */
	uint16_t apart;       /* of the span that begins, see weight_apart */
	uint8_t rate;         /* of it */
	struct account joined_mark;
	struct model_thread *joined,
		*works_for; /* while it waits in backward(): the one that works */
	struct autograd_thread autograd;
	struct wait_thread wait;
	struct raise_mark raise;
	uint64_t device_wait_end; /* when it last had waited for a device; for a copy: */
	uint32_t device_finding;
	bool device_wait_copy;
	uint64_t launches, ops, events;
	bool started;
};

struct range_total {
	uint64_t count, sum;
};

struct model {
	struct definitions definitions;
	struct call_tree tree;
	struct calls calls;
	struct op_table op_table;
	struct loops loops;
	uint32_t main_loop; /* a node of them: what figures are told per pass of; LOOP_NONE */
	struct waits waits;
	struct findings findings;
	struct devices devices;
	struct graph_launches graph;
	struct raises raises;
	uint32_t thread_room;
	struct model_thread **threads; /* as definitions.threads; NULL: no events */
	struct range_total *ranges;    /* as definitions.strings */
	double unit_ns;
	struct weights weights;
	uint64_t python_weight; /* what tare took of Python code, on all threads */

	/* The process's account is that of its leading thread. process_ledger.c */
	struct account process, leader_mark;
	struct account startup, program; /* as of startup_end and program_end */
	/* Imports of the main thread after the start-up, while it leads: not in `process`. */
	struct account imports, program_imports;
	bool importing;
	struct model_thread *leader, *main;
	uint64_t process_last;
	bool launches_lead; /* a launch was seen: operators alone change no leader */
	bool startup_ended;
	bool has_library; /* calls of cuBLAS, cuDNN, ... are in the trace */
	uint64_t startup_end;
	uint64_t import_units;                /* of the main thread, after the start-up */
	uint64_t program_end, program_length; /* of the longest frame at the main thread's base */

	uint32_t main_tid;
	uint64_t open, end; /* of what was recorded, clock units */
	uint64_t last_event;
	uint64_t span_count, unknown_events;
	uint64_t resyncs, stray_leaves;
};

/* Reads all events. The reader stays the caller's. */
void model_load(struct model *model, struct trace_reader *reader);

/* The same in steps: definitions, then batches by walk_batch, then the sums. */
void model_start(struct model *model, struct trace_reader *reader);
void model_finish(struct model *model, struct trace_reader *reader);

void model_free(struct model *model);

/* A trace of more than 2^56 units, years, is damaged there. */
static inline bool model_time_is_sane(const struct model *model, uint64_t time)
{
	return time - model->open < (uint64_t)1 << 56;
}

static inline double model_ns(const struct model *model, double units)
{
	return units * model->unit_ns;
}
