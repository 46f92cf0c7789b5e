/*
 * optable.h: what each operator cost at each place it was called from.
 *
 * For analyzer/'s model: context.c puts one sample in for each call of a top operator; opview.c groups
 * the rows for people. Times are in clock units.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/calls.h"
#include "analyzer/hash.h"
#include "analyzer/histogram.h"

#define OP_ROWS_MAX (1u << 18)

/* Parts of a call's cost. PART(NAME): in the JSON NAME_ns. `fixed` is the sum of those above gil. */
#define OP_PARTS(PART)                                                                             \
	PART(python)                                                                               \
	PART(framework)                                                                            \
	PART(library) PART(launch) PART(copy) PART(memory) PART(gil) PART(wait) PART(fixed)

enum op_part {
#define PART_(name) OP_##name,
	OP_PARTS(PART_)
#undef PART_
		OP_PART_COUNT,
};

#define OP_UNKNOWN UINT64_MAX

enum op_kind {
	OP_KIND_OPERATOR,
	OP_KIND_NODE,    /* backward: the site is the forward operator's */
	OP_KIND_CALL,    /* a call, or a section that begins with one, without an operator */
	OP_KIND_SECTION, /* a section with neither: objects that are freed, mostly */
};

struct op_key {
	uint32_t kind; /* enum op_kind */
	uint32_t op;   /* index of the operator, node type or function */
	uint32_t code, site, user_code, user_site;
	uint32_t thread; /* index; 0: one of the many */
};

/* Calls of one class below one row. */
struct op_cell {
	uint32_t class, next;
	uint64_t calls, sum; /* the first call of the row apart */
	uint64_t first_calls, first_sum;
};

/* What a thread spent in an operator, calls apart. */
struct op_times {
	uint64_t python, framework, gil;
};

/* Calls of one row that have something else in common: their first ones, and those not known, are not in it. */
struct op_sum {
	uint64_t timed;
	struct op_times times;
	uint32_t cells; /* list; 0: none */
};

/* A call whose times are not in the histograms yet. */
struct op_pending {
	uint32_t python, framework; /* OP_PENDING_UNKNOWN: not known */
	uint32_t calls_fixed;       /* of launches, copies, ...: what is not waiting */
};

#define OP_PENDING_MAX     32u
#define OP_PENDING_UNKNOWN UINT32_MAX

/* From the second call on. */
struct op_distribution {
	uint32_t pending_count;
	struct op_pending
		pending[OP_PENDING_MAX];    /* many at once: the histograms are large and cold */
	uint64_t python_cap, python_cap_at; /* by what is known so far, and as of how many calls */
	/*
	 * Calls of which a part took nothing are not in it: they are what is missing to the row's
	 * `timed`, of framework and fixed to `framework_known`. Of python all are that are known.
	 */
	struct histogram parts[OP_PART_COUNT];
};

struct op_row {
	struct op_key key;
	uint32_t cells; /* list; 0: none */
	uint64_t calls;
	uint64_t timed; /* of them: the first apart, and without those whose end is not known */
	uint64_t python_known, framework_known;
	uint64_t launches;
	uint64_t made;       /* calls in which autograd nodes were made */
	struct op_times sum; /* of the `timed` ones */
	struct op_distribution *distribution;
	struct op_times first;
	uint64_t first_time;
	bool has_first, first_python_known, first_framework_known;
};

struct op_table {
	struct op_row *rows;   /* from 1 */
	struct op_cell *cells; /* from 1 */
	uint32_t count, room, cell_count, cell_room;
	struct hash_table index;
	struct calls *calls;
};

/* Calls of one class in one sample. */
struct op_call {
	uint32_t class, count;
	uint64_t sum;
};

struct op_sample {
	uint64_t python, framework; /* OP_UNKNOWN: not known */
	uint64_t gil;
	const struct op_call *calls;
	uint32_t call_count;
	uint64_t launches, time;
	bool known; /* false: its times are not, it counts as a call alone */
};

void op_table_start(struct op_table *table, struct calls *calls);
void op_table_free(struct op_table *table);

/* The row of that key, made where it is new. */
uint32_t op_table_row(struct op_table *table, const struct op_key *key);

/* True: it counts in the row's means and percentiles, being neither the first nor unknown. */
bool op_table_add(struct op_table *table, uint32_t row, const struct op_sample *sample);
void op_sum_add(struct op_table *table, struct op_sum *sum, const struct op_sample *sample);

/* At the end of the trace: the histograms are complete. */
void op_table_finish(struct op_table *table);

/* After that: sums of all parts of a row. What is not known counts as nothing. */
struct op_sums {
	double later[OP_PART_COUNT], first[OP_PART_COUNT];
	double fixed_known; /* later, of the calls whose framework is known */
	double python_cap;
};
struct op_sums op_row_sums(const struct op_table *table, const struct op_row *row);

/* Of some of the row's calls, added to `parts`. Where Python's time is capped, by what the row's loses. */
void op_sum_parts(const struct op_table *table, const struct op_row *row, const struct op_sum *sum,
		  double parts[OP_PART_COUNT]);

/* Python's time on the way to an operator counts up to that many times the site's p10. */
#define OP_PYTHON_CAP 3
