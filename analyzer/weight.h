/*
 * weight.h: what tare itself took of a program's time, by what its events are known to cost.
 *
 * For analyzer/'s model. The hook of an event runs in part before the event's time and in part after it:
 * of a span's two events what lies between their times is the span's, the rest what is around's. walk.c
 * puts both into the account's `weight`, by slot; ledger.c moves it to tare's line at the end. A call that is made
 * again and again costs less than one between which the program uses the caches for itself: costs are known at two
 * intervals, and taken in proportion between their logarithms. Of frames, all of which run the same code, it is the
 * time since the last frame's event that counts; of others that since the same call was made before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "traces/schema.h"

struct call_tree;
struct definitions;

/* Weights are in fractions of a clock unit. */
#define WEIGHT_BITS  8
#define WEIGHT_SCALE ((double)(1u << WEIGHT_BITS))

#define WEIGHT_APART (1 << 15)

#define WEIGHT_RATES_MAX 64u
#define WEIGHT_DISTANCES 1024u /* of FRAME's how */

/* Of one event, of which a span has two. */
struct weight_rate {
	uint32_t inside, outside;          /* where calls are close */
	int32_t inside_more, outside_more; /* where they are apart */
};

enum weight_source {
	WEIGHT_UNKNOWN,
	WEIGHT_START,      /* what C alone could tell when the process began */
	WEIGHT_LATER,      /* kept on this machine, but not in the trace */
	WEIGHT_CALIBRATED, /* in the trace */
};

struct weights {
	enum weight_source source;
	/* How much of what is more, of WEIGHT_APART: by log2 of the interval, + 1. Of frames; of others */
	uint16_t apart[2][65];
	struct weight_rate rates[WEIGHT_RATES_MAX]; /* 0: no cost */
	double errors[WEIGHT_RATES_MAX];            /* of both, in all */
	uint32_t rate_count;
	uint8_t events[TRACE_EVENT_CODES];   /* index of the rate */
	uint8_t frames[2][WEIGHT_DISTANCES]; /* of functions; of generators and coroutines */
	uint8_t mark;
	double error; /* at the end: of the weight, how much it may be off */
};

/* By the trace's CALIBRATION records, or those that this machine keeps for its interpreter. */
void weights_start(struct weights *weights, const struct definitions *definitions, double unit_ns);

/* By these. */
void weights_set(struct weights *weights, const struct record_CALIBRATION *records, unsigned count,
		 double unit_ns);

/* At the end of the trace. */
void weights_finish(struct weights *weights, const struct call_tree *tree);

/* How far the interval `step` is from the one to the other at which costs are known. */
static inline uint32_t weight_apart(const struct weights *weights, bool frame, uint64_t step)
{
	return weights->apart[!frame][step ? 64 - __builtin_clzll(step) : 0];
}

static inline uint32_t weight_inside(const struct weight_rate *rate, uint32_t apart)
{
	return rate->inside + (uint32_t)((int64_t)rate->inside_more * apart / WEIGHT_APART);
}

static inline uint32_t weight_outside(const struct weight_rate *rate, uint32_t apart)
{
	return rate->outside + (uint32_t)((int64_t)rate->outside_more * apart / WEIGHT_APART);
}

/* One line for people: where the costs are from. NULL: they are not known. */
const char *weights_source_text(const struct weights *weights);
