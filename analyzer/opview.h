/*
 * opview.h: the operator table grouped for people: by operator, site, line, module, thread.
 *
 * For cmd_*.c. The grouped rows become a table with op_view_table.
 */
#pragma once

#include "analyzer/floors.h"
#include "analyzer/model.h"
#include "analyzer/table.h"

enum op_group {
	GROUP_OP = 1,
	GROUP_SITE = 2,   /* the instruction that called: code object and offset */
	GROUP_LINE = 4,   /* the line of the nearest user code */
	GROUP_MODULE = 8, /* the Python module of the site */
	GROUP_THREAD = 16,
};

struct op_stats {
	struct op_key key;  /* of the first row; only what is grouped by holds for all */
	const char *op;     /* name; NULL where rows of several are in it */
	const char *parent; /* nested operators: the one around */
	char *module;
	bool several_kinds;
	uint64_t calls, launches;
	uint64_t loop_calls;        /* in the model's main loop */
	double pass[OP_PART_COUNT]; /* of these, in clock units; the first of each place as the others */
	bool pass_known;
	uint64_t samples;                           /* calls that the sums and histograms are of */
	uint64_t python_samples, framework_samples; /* of the latter: of `fixed` too */
	double sum[OP_PART_COUNT];                  /* clock units */
	double total;                               /* fixed and wait of all calls */
	double first;                               /* fixed and wait of the first call */
	uint64_t first_time;
	const struct op_floor *floor; /* the least of its rows; NULL: none has one */
	bool on_cpu;                  /* one is an operator that calls nothing of CUDA */
	struct histogram parts[OP_PART_COUNT];
	/* What devices did because of it: of the first call too. */
	uint64_t kernels, device_sum; /* clock units */
	struct histogram delays;      /* from a kernel's launch to its start */
};

/* How many calls the sum and the histogram of a part are of. */
static inline uint64_t op_stats_samples(const struct op_stats *stats, unsigned part)
{
	return part == OP_python                        ? stats->python_samples :
	       part == OP_framework || part == OP_fixed ? stats->framework_samples :
							  stats->samples;
}

struct op_view {
	const struct model *model;
	unsigned group; /* enum op_group bits */
	unsigned flags; /* enum op_view_flag */
	bool device;    /* set: what devices did has columns */
	bool per_pass;  /* set: text has the sums of a pass in place of a call's medians */
	struct op_floor *floors;
	struct op_stats *rows; /* from 1 */
	uint32_t count, room;
	struct hash_table index;
	struct arena names;
};

enum op_view_flag {
	VIEW_NESTED =
		1, /* also operators inside others, as far as they are known: how often, and in which */
	VIEW_TEXT = 2, /* sections without an operator are one row, and what all took is another */
};

/* What is no operator comes last, where rows are by operator. */
void op_view_make(struct op_view *view, struct model *model, unsigned group, unsigned flags);
void op_view_free(struct op_view *view);

/* What rows can be sorted by; false where there is no such key. */
bool op_view_sort(struct op_view *view, const char *key);
const char *op_view_sort_keys(void);

/* Rows that `top` leaves out. */
unsigned op_view_hidden(const struct op_view *view, unsigned top);

/*
 * The rows as a table, of operators at most `top` (0: all). `wall`: of the table's scope, for the shares, in clock
 * units. The table keeps nothing of the view.
 */
struct table *op_view_table(const struct op_view *view, unsigned top, double wall);

/* "train.py:31", and the function, as text; free them. Line 0 and NULL where they are not known. */
uint32_t site_line(const struct model *model, uint32_t code, uint32_t site);
char *site_text(const struct model *model, uint32_t code, uint32_t site);
