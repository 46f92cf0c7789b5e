/*
 * findings.h: the waits of a trace by place and cause: how often, in which passes, how long.
 *
 * For waits.c, which adds to them, and for cmd_*.c at the end. Bounded by distinct places.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/hash.h"
#include "analyzer/queues.h"

struct model;
struct model_thread;

#define FINDINGS_MAX        (1u << 16)
#define FINDING_LOOPS_MAX   24 /* loops around a wait that are told apart */
#define FINDING_CLASSES_MAX 64

enum finding_kind {
#define KIND(NAME, name, title) FINDING_##NAME,
#include "analyzer/waits.def"
#undef KIND
	FINDING_KINDS,
};

extern const char *const finding_kind_names[FINDING_KINDS],
	*const finding_kind_titles[FINDING_KINDS];

enum design {
	DESIGN_NONE,
#define DESIGN(NAME, file, why) DESIGN_##NAME,
#include "analyzer/designs.def"
#undef DESIGN
	DESIGN_COUNT,
};

extern const char *const design_files[DESIGN_COUNT], *const design_reasons[DESIGN_COUNT];

/* All bytes count. */
struct finding_key {
	uint32_t kind;           /* enum finding_kind */
	uint32_t explicit;       /* no operator is open around it: the program asks for it */
	uint32_t design;         /* enum design */
	uint32_t op_kind, op;    /* the top operator, as in op_key; op_kind OP_KIND_SECTION: none */
	uint32_t function, copy; /* the call; the copy that it waits for, or 0 */
	uint32_t code, site, user_code, user_site;
	uint32_t backward_code, backward_site; /* on autograd's threads: who waits in backward() */
	uint32_t thread;
	uint32_t loop_code, loop; /* the nearest; 0: none */
};

/* Of a finding within one loop. */
struct finding_loop {
	uint32_t node;
	uint64_t count, passes; /* waits; passes with one */
	uint64_t first_pass, last_pass;
	uint64_t interval_least, interval_most; /* passes from one with a wait to the next */
};

struct finding_class {
	uint32_t class;
	uint64_t count, sum;
};

struct finding {
	struct finding_key key;
	uint64_t count, bytes; /* bytes: of the largest copy */
	uint64_t first_time, last_time;
	bool apart;   /* on a thread with loops of its own, which nobody waits for in backward() */
	uint64_t gap; /* clock units */
	uint64_t device_gap; /* as the device tells it; it replaces `gap` where devices were seen */
	struct queued queued; /* in all its waits */
	struct finding_loop loops[FINDING_LOOPS_MAX];
	uint32_t loop_count;
	struct finding_class *classes;
	uint32_t class_count, class_room;
	bool in_library; /* the nearest loop is, or was, a library's */
	uint32_t stack;  /* of the longest call that has one: id of a STACK record; 0: none */
	uint64_t stack_duration;
};

struct findings {
	struct finding *rows; /* from 1 */
	uint32_t count, room;
	struct hash_table index;
};

/* Adds a wait: in the loops that `thread`, and who waits for it, are in. Returns its row. */
uint32_t findings_add(struct model *model, const struct model_thread *thread,
		      const struct finding_key *key, uint64_t bytes, uint64_t time);

/* A call of that class was part of it. */
void findings_add_call(struct findings *findings, uint32_t finding, uint32_t class,
		       uint64_t duration);

/* That call was made there. `stack`: id of a STACK record, or 0. */
void findings_add_stack(struct findings *findings, uint32_t finding, uint32_t stack,
			uint64_t duration);

/*
 * After the loops' end. Loops of libraries that launch nothing only move data, such as those that save,
 * load or place a model, and those of notebooks run the program: the nearest loop is the one around them,
 * and what then is the same place is one row.
 */
void findings_finish(struct model *model);

void findings_free(struct findings *findings);

/* ---------------------------------------------------------------- once the trace was read */

enum finding_class_name { CLASS_HOT, CLASS_PERIODIC, CLASS_ONCE, CLASS_UNKNOWN, CLASS_NAMES };

extern const char *const finding_class_names[CLASS_NAMES];

/* What is said of a finding. Ratios and ns; NAN: not known. */
struct verdict {
	enum finding_class_name class;
	double per_pass, main_per_pass, period;
	double passes; /* of the nearest loop, in all */
	double wait_ns, gap_ns;
	double share; /* of the main loop's time: wait and gap in it */
	double queued; /* for each wait: launches, copies and sets since the stream was last waited for */
	bool earlier_work; /* it waits, and most of that came from other lines */
	bool own_work;     /* it waits, and most of that came from its own line */
	bool in_main;
	bool warm_up; /* memory taken once, or a library at work before the main loop: no finding */
};

/* `main_loop`: a node, or LOOP_NONE. */
struct verdict finding_verdict(struct model *model, const struct finding *finding,
			       uint32_t main_loop);

/*
 * Of queries: whether that line asks more than a thousand times in a pass of some loop, or without an
 * end to wait for: in a loop that does nothing else.
 */
bool finding_spins(const struct model *model, const struct finding *finding);

/* What to do about it; NULL where the calls do not tell the cause. */
const char *finding_hint(const struct model *model, const struct finding *finding);

/* The name of its operator; NULL: there is none. */
const char *finding_op(const struct model *model, const struct finding *finding);
