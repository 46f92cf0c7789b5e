/* calls.c: see calls.h. */
#include "analyzer/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_CAP_NS         5000.
#define LONG_LAUNCH_NS      20000.
#define LONG_LAUNCH_MEDIANS 8
#define FULL_QUEUE_LEAST    8
/* Where the calls of a class took less than that of their idle cost on average, none has waited. */
#define NOISE 1.25
/* What is slower than that is not slow for its bytes: small copies tell nothing of the bus. */
#define COPY_RATE_LEAST 1. /* bytes a ns */

enum { COPY_H2D = 1, COPY_D2D = 3 }; /* cudaMemcpyKind */

#define NO_WAIT (1u << 31) /* of a class's variant: there was nothing to wait for */

/* Buckets of sizes and durations: 1/8 of a power of two wide. Never 0. */
static uint32_t bucket(uint64_t value)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);

	return 1 +
	       (bits <= 4 ? (uint32_t)value : (bits << 3 | (uint32_t)(value >> (bits - 4) & 7)));
}

static const struct {
	enum ledger_line line;
	bool waits;
} categories[] = {
	[TRACE_CATEGORY_LAUNCH] = { LINE_launch, false },
	[TRACE_CATEGORY_COPY] = { LINE_copy, true },
	[TRACE_CATEGORY_COPY_SYNC] = { LINE_copy, true },
	/* Mapping and pinning pages takes as long as it takes: that it waited cannot be told. */
	[TRACE_CATEGORY_ALLOC_DEVICE] = { LINE_memory, false },
	[TRACE_CATEGORY_ALLOC_HOST] = { LINE_memory, false },
	[TRACE_CATEGORY_ALLOC_MANAGED] = { LINE_memory, false },
	[TRACE_CATEGORY_REGISTER] = { LINE_memory, false },
	[TRACE_CATEGORY_UNREGISTER] = { LINE_memory, false },
	[TRACE_CATEGORY_FREE] = { LINE_memory, true },
	/* What a synchronise costs where there is nothing to wait for is the framework's. */
	[TRACE_CATEGORY_SYNC] = { LINE_framework, true },
	[TRACE_CATEGORY_LIBRARY] = { LINE_library, false },
};

static const unsigned category_count = sizeof(categories) / sizeof(*categories);

bool calls_have_line(unsigned category)
{
	return category < category_count && category != TRACE_CATEGORY_OTHER &&
	       category != TRACE_CATEGORY_QUERY && category != TRACE_CATEGORY_CAPTURE;
}

/* Whether the device has nothing to do after a call. */
static bool drains(const char *function)
{
	static const char *const names[] = { "cudaDeviceSynchronize", "cudaThreadSynchronize",
					     "cudaFree" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

void calls_start(struct calls *calls, struct definitions *definitions, double unit_ns)
{
	calls->definitions = definitions;
	calls->functions = memory_zero(definitions->function_count + 1, sizeof(*calls->functions));
	for (uint32_t i = 1; i < definitions->function_count; i++)
		calls->functions[i].drains = drains(definitions->functions[i].name);
	calls->idle_cap = (uint64_t)(IDLE_CAP_NS / unit_ns);
	calls->rate_least = COPY_RATE_LEAST * unit_ns;
	calls->long_launch = (uint64_t)(LONG_LAUNCH_NS / unit_ns);
	memory_grow(calls->classes, calls->class_count, calls->class_room);
	calls->class_count = 1;
}

void calls_free(struct calls *calls)
{
	for (uint32_t i = 0; calls->functions && i < calls->definitions->function_count; i++)
		histogram_free(&calls->functions[i].durations);
	free(calls->functions);
	free(calls->classes);
	free(calls->rates);
	*calls = (struct calls){ 0 };
}

static uint32_t rate_of(struct calls *calls, uint32_t function, uint32_t kind)
{
	for (uint32_t i = 0; i < calls->rate_count; i++)
		if (calls->rates[i].function == function && calls->rates[i].kind == kind)
			return i;
	memory_grow(calls->rates, calls->rate_count, calls->rate_room);
	calls->rates[calls->rate_count] = (struct call_rate){ .function = function, .kind = kind };
	return calls->rate_count++;
}

static uint32_t class_of(struct calls *calls, uint32_t function, uint32_t variant)
{
	struct def_function *definition = &calls->definitions->functions[function];
	uint32_t found = definition->first_class, before = 0;

	for (; found && calls->classes[found].variant != variant;
	     found = calls->classes[found].next)
		before = found;
	if (found && before) {
		/* To the front: calls repeat. */
		calls->classes[before].next = calls->classes[found].next;
		calls->classes[found].next = definition->first_class;
		definition->first_class = found;
	}
	if (found)
		return found;
	if (calls->class_count >= CALL_CLASSES_MAX)
		return definition->first_class;
	memory_grow(calls->classes, calls->class_count, calls->class_room);
	calls->classes[calls->class_count] = (struct call_class){
		.function = function,
		.variant = variant,
		.next = definition->first_class,
		.category = definition->category,
		.least = UINT64_MAX,
		.least_bytes = UINT64_MAX,
	};
	return definition->first_class = calls->class_count++;
}

/*
 * Of an asynchronous copy: within the device it waits for nothing, to the device not where that has
 * nothing to do. From the device it may be the first thing that waits for work which is not seen.
 */
static bool no_wait(const struct calls *calls, uint64_t kind)
{
	return kind == COPY_D2D || (kind == COPY_H2D && !calls->queued);
}

uint32_t calls_class(struct calls *calls, uint32_t function, bool copy, uint64_t kind,
		     uint64_t bytes)
{
	unsigned category = calls->definitions->functions[function].category;
	uint32_t class;

	if (__builtin_expect(!copy, 1))
		return class_of(calls, function,
				category == TRACE_CATEGORY_FREE && !calls->queued ? NO_WAIT : 0);
	kind = kind < 15 ? kind : 15;
	class = class_of(
		calls, function,
		(uint32_t)kind << 16 | bucket(bytes) |
			(category == TRACE_CATEGORY_COPY && no_wait(calls, kind) ? NO_WAIT : 0));
	if (class && !calls->classes[class].count)
		calls->classes[class].rate = rate_of(calls, function, (uint32_t)kind);
	return class;
}

static uint64_t launch_median(struct call_function *function)
{
	/* Found anew now and then: it moves little. */
	if (function->durations.count > function->median_at + function->median_at / 4) {
		function->median_at = function->durations.count;
		function->median = (uint64_t)histogram_percentile(&function->durations, 0.5);
	}
	return function->median;
}

uint32_t calls_ended(struct calls *calls, uint32_t number, uint64_t duration, uint64_t bytes)
{
	struct call_class *class = &calls->classes[number];
	struct call_function *function = &calls->functions[class->function];

	if (!function->least || duration < function->least)
		function->least = duration ? duration : 1;
	/*
	 * Of a synchronise this proves nothing: what other interfaces than the runtime's launch is not
	 * seen, and it may be all that there is.
	 */
	if (!calls->queued && class->category != TRACE_CATEGORY_SYNC)
		function->was_idle = true;
	if (function->drains)
		calls->queued = 0;
	else if (class->category == TRACE_CATEGORY_LAUNCH ||
		 class->category == TRACE_CATEGORY_LIBRARY ||
		 class->category == TRACE_CATEGORY_COPY ||
		 class->category == TRACE_CATEGORY_COPY_SYNC)
		calls->queued++;
	if (class->category == TRACE_CATEGORY_LAUNCH) {
		histogram_add(&function->durations, duration);
		/* The first of a kernel loads it, which is no wait for the device. */
		if (duration > calls->long_launch && calls->queued > FULL_QUEUE_LEAST) {
			number = class_of(calls, class->function, bucket(duration));
			class = &calls->classes[number];
		}
	}
	if (bytes && class->variant) {
		struct call_rate *rate = &calls->rates[class->rate];
		double bytes_per_unit = (double)bytes / (double)(duration ? duration : 1);

		if (class->category != TRACE_CATEGORY_LAUNCH &&
		    bytes_per_unit > rate->bytes_per_unit)
			rate->bytes_per_unit = bytes_per_unit;
		if (bytes < class->least_bytes)
			class->least_bytes = bytes;
	}
	if (duration < class->least)
		class->least = duration;
	class->count++;
	class->sum += duration;
	return number;
}

void calls_finish(struct calls *calls)
{
	for (uint32_t i = 0; i < calls->definitions->function_count; i++)
		calls->functions[i].median_at = 0;
}

double calls_idle(const struct calls *calls, uint32_t number)
{
	const struct call_class *class = &calls->classes[number];
	const struct call_function *function = &calls->functions[class->function];
	double idle = (double)function->least, rate;

	if (!function->was_idle)
		idle = fmin(idle, (double)calls->idle_cap);
	if (class->variant && class->category != TRACE_CATEGORY_LAUNCH &&
	    class->least_bytes != UINT64_MAX) {
		rate = fmax(calls->rates[class->rate].bytes_per_unit, calls->rate_least);
		idle += (double)class->least_bytes / rate;
	}
	return fmin(idle, (double)class->least);
}

bool calls_wait(struct calls *calls, uint32_t number)
{
	const struct call_class *class = &calls->classes[number];

	if (class->category >= category_count)
		return false;
	if (class->category != TRACE_CATEGORY_LAUNCH)
		return categories[class->category].waits && !(class->variant & NO_WAIT) &&
		       (!class->count || (double)class->sum > NOISE * (double)class->count *
								      calls_idle(calls, number));
	/* Where most launches wait, the median is no measure of what one costs. */
	uint64_t median = launch_median(&calls->functions[class->function]);

	return class->variant && class->count &&
	       class->sum / class->count >
		       LONG_LAUNCH_MEDIANS * (median < calls->idle_cap ? median : calls->idle_cap);
}

enum ledger_line calls_line(const struct calls *calls, uint32_t class)
{
	unsigned category = calls->classes[class].category;

	return category < category_count && class ? categories[category].line : LINE_other;
}

enum ledger_line calls_counted(const struct calls *calls, uint32_t class)
{
	return calls->classes[class].category == TRACE_CATEGORY_SYNC ? LINE_wait :
								       calls_line(calls, class);
}

double calls_split(struct calls *calls, uint32_t class, uint64_t count, double sum, double *cost_p)
{
	double cost = sum;

	if (calls_wait(calls, class))
		cost = fmin((double)count * calls_idle(calls, class), sum);
	*cost_p = cost;
	return sum - cost;
}
