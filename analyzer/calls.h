/*
 * calls.h: calls of the CUDA runtime and of libraries: which line they belong to, and how much of them
 * was waiting for the device.
 *
 * For analyzer/'s model. A call costs some time even where it has nothing to wait for, its idle cost;
 * what it took beyond is waiting. The idle cost is the shortest duration of that function in the trace;
 * at most 5 µs, unless some call of it was made while the device had nothing to do; of a copy, plus its bytes at the fastest rate seen. A launch waits only where it took
 * longer than 20 µs and 8 times the median (that at most 5 µs): for room in a full queue.
 *
 * What is shortest, fastest and median is known at the end. So calls are counted by class: all calls of
 * a class have the same idle cost, and the count and the sum of a class give its exact waiting time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/definitions.h"
#include "analyzer/histogram.h"
#include "analyzer/ledger.h"

#define CALL_CLASSES_MAX 4096u

/* Calls of one function; of a copy, of one kind and about one size; of long launches, of one duration. */
struct call_class {
	uint32_t function; /* index */
	uint32_t variant; /* 0, and whether it cannot have waited; copies: kind and size; launches longer than 20 µs: duration */
	uint32_t next;    /* class of the same function; 0: none */
	uint32_t rate;    /* of copies: index of their rate */
	uint8_t category; /* enum trace_category */
	uint64_t count, sum, least; /* durations, in clock units */
	uint64_t least_bytes;
};

/* Of one function, all classes. */
struct call_function {
	uint64_t least;
	bool was_idle;              /* a call was made while the device had nothing to do */
	bool drains;                /* after a call it has nothing to do */
	uint64_t median, median_at; /* of launches: as of that many */
	struct histogram durations; /* of launches */
};

struct call_rate {
	uint32_t function;
	uint32_t kind;
	double bytes_per_unit;
};

struct calls {
	struct definitions *definitions;
	struct call_class *classes;      /* from 1 */
	struct call_function *functions; /* as definitions->functions */
	struct call_rate *rates;
	uint32_t class_count, class_room, rate_count, rate_room;
	uint64_t queued; /* calls that gave the device something to do, since it had nothing */
	uint64_t idle_cap, long_launch; /* 5 and 20 µs in clock units */
	double rate_least;              /* bytes per clock unit */
};

void calls_start(struct calls *calls, struct definitions *definitions, double unit_ns);
void calls_free(struct calls *calls);

/* Whether calls of that category have classes and lines of their own; others are part of what is around. */
bool calls_have_line(unsigned category);

/*
 * The class of a call that begins. `copy`: an event with `kind` and `bytes`.
 */
uint32_t calls_class(struct calls *calls, uint32_t function, bool copy, uint64_t kind,
		     uint64_t bytes);

/*
 * Counts a call that has ended after `duration`. Returns its class, which is another one than at its
 * start where a launch took long.
 */
uint32_t calls_ended(struct calls *calls, uint32_t class, uint64_t duration, uint64_t bytes);

/* At the end of the trace: medians are of all launches. */
void calls_finish(struct calls *calls);

/* The idle cost by what is known so far; at the end it holds for all calls of the class. */
double calls_idle(const struct calls *calls, uint32_t class);

/* Whether calls of the class waited for whatever they took beyond the idle cost. */
bool calls_wait(struct calls *calls, uint32_t class);

/* The line of the part that is not waiting. */
enum ledger_line calls_line(const struct calls *calls, uint32_t class);

/* The line that a call is counted in: as above, of those that wait by definition wait. */
enum ledger_line calls_counted(const struct calls *calls, uint32_t class);

/* Splits `sum`, taken by `count` calls of the class, into what they cost (*cost_p) and waiting (returned). */
double calls_split(struct calls *calls, uint32_t class, uint64_t count, double sum, double *cost_p);
