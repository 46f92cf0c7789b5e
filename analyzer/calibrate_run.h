/*
 * calibrate_run.h: the loops of calibrate.py, run bare and traced.
 *
 * For calibrate.c, which concludes from what was measured what tare costs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CALIBRATE_PAIRS 8  /* of processes, bare and traced */
#define CALIBRATE_TURNS 16 /* of each process */
#define CALIBRATE_KINDS 32

enum loop {
#define LOOP(name, function, kind) LOOP_##name,
#include "analyzer/calibrate_loops.def"
#undef LOOP
	LOOPS
};
extern const struct calibrate_loop {
	const char *name, *function, *kind;
} calibrate_loops[LOOPS];

/* Of events that a loop of C makes at the traced process's end: as own_cost.c measures them, ns. */
struct c_kind {
	char name[20];
	double inside[CALIBRATE_PAIRS], outside[CALIBRATE_PAIRS], error;
	double more[CALIBRATE_PAIRS]; /* where they are apart */
	unsigned count, more_count;
};

/* What is of a loop is in ns. */
struct measured {
	double ns[2][LOOPS][CALIBRATE_PAIRS * CALIBRATE_TURNS]; /* a call; bare and traced */
	double calls[LOOPS];                                    /* of a round */
	double duration[LOOPS][CALIBRATE_PAIRS];                /* of a span, as the trace has it */
	uint64_t spans[LOOPS];                                  /* in the last trace */
	uint32_t distance[LOOPS];                               /* as in FRAME, + 1 */
	struct c_kind kinds[CALIBRATE_KINDS];
	unsigned kind_count;
};
/* One line for people; free it. */
char *calibrate_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* False: *why is one line that says why not; free it. */
bool calibrate_run(struct measured *measured, const char *python, const char *library, char **why);
