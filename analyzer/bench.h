/*
 * bench.h: the rows of bench.def, timed in two processes of one Python: one bare, one traced.
 *
 * For cmd_bench.c. The processes run bench.py, which is part of this command, and answer in turn: for each
 * row the timer, the traced loop twice, the timer, and so on, so that what drifts in the machine falls
 * out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum bench_group { BENCH_TORCH, BENCH_TORCH_GPU, BENCH_PYTHON };

struct bench_row {
	const char *name;
	enum bench_group group;
	bool calls; /* the statement calls something: it shows in a trace */
	double published_ns;
	const char *setup, *statement;
};

extern const struct bench_row bench_rows[];
extern const unsigned bench_row_count;

/* How many of a row's statements a pass of its loop holds, and ns a statement; NAN: not known. */
struct bench_timing {
	const char *unknown; /* why there is none; NULL: there is */
	char *error;         /* the program's own words; frees with the rest */
	long count;
	double mean, median, p25, p75; /* by the untraced timer; all but the mean of short blocks */
	double blocked, blocked_iqr;   /* by blocked_autorange, of PyTorch */
	double raw;                    /* median of the traced loop, tare's weight included */
};

struct bench_request {
	const char *python;
	long rounds;
	const bool *chosen; /* as bench_rows */
	const char *folder; /* for the trace and what else is written; exists */
};

enum bench_device { BENCH_DEVICE_NONE, BENCH_DEVICE_GPU, BENCH_DEVICE_SIMULATED };

struct bench {
	struct bench_timing *timings; /* as bench_rows */
	json_t *machine;              /* as bench.py says it */
	enum bench_device device;
	char *trace; /* the folder of it; NULL: there is none */
};

/* Returns STATUS_FINE, or another after saying why. */
int bench_measure(struct bench *bench, const struct bench_request *request);
void bench_free(struct bench *bench);

/* bench.py, with a 0 at its end. */
extern const char bench_program[];
