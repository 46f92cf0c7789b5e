/*
 * What is known of the values in device memory. Kernels compute nothing, so after one of them its
 * outputs hold whatever an earlier owner of the memory had copied there; a program that branches on
 * such a value or allocates by it goes astray. So a small read gives the bytes only where the
 * program itself put them and no kernel was given a pointer to them since, and else zeros.
 *
 * Of torch's most frequent kernels it is known which parameter points to the output. The pointers
 * of the others are found as a garbage collector would: any word among the parameters that lies in
 * device memory. They are on the launching thread's stack, where the compiler's launch stubs put
 * them. What is found too much costs a value, no more.
 *
 * All but sim_touched_by is called with the core's lock held.
 */
#include <string.h>
#include "core.h"

enum {
	MAX_RANGES = 4096,
	REACH = 512, /* a pointer's kernel may write what begins so far behind it */
	MAX_PARAMETERS = 64,
	LAST_BYTES =
		2048, /* of the last parameter: the largest structures but torch's lists of tensors */
	SCAN_BYTES = 4096,
};

/* What the program put there: by address, disjoint. */
static struct range {
	uintptr_t begin, end;
} ranges[MAX_RANGES];
static unsigned count;

/* The number of ranges that end at or below p. */
static unsigned position(uintptr_t p)
{
	unsigned low = 0, high = count;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (ranges[middle].end <= p)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert(unsigned i, uintptr_t begin, uintptr_t end)
{
	if (begin >= end)
		return;
	if (count == MAX_RANGES)
		i = count = 0;
	memmove(ranges + i + 1, ranges + i, (count - i) * sizeof(ranges[0]));
	ranges[i] = (struct range){ begin, end };
	count++;
}

/* Removes what overlaps, the parts that do not included; what they were is the answer. */
static struct range remove_overlapping(uintptr_t begin, uintptr_t end)
{
	unsigned first = position(begin), last = first;
	struct range all = { begin, end };

	while (last < count && ranges[last].begin < end)
		last++;
	if (last > first) {
		all.begin = ranges[first].begin;
		all.end = ranges[last - 1].end;
	}
	memmove(ranges + first, ranges + last, (count - last) * sizeof(ranges[0]));
	count -= last - first;
	return all;
}

void core_values_forget(const void *p, size_t bytes)
{
	uintptr_t begin = (uintptr_t)p, end = begin + bytes;
	struct range all = remove_overlapping(begin, end);

	insert(position(begin), all.begin, begin);
	insert(position(end), end, all.end);
}

void core_values_set(const void *p, size_t bytes)
{
	uintptr_t begin = (uintptr_t)p;

	core_values_forget(p, bytes);
	insert(position(begin), begin, begin + bytes);
}

bool core_values_known(const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p, end = at + bytes;

	for (unsigned i = position(at); at < end; i++) {
		if (i == count || ranges[i].begin > at)
			return false;
		at = ranges[i].end;
	}
	return true;
}

void core_values_touched(const struct sim_touched *t)
{
	if (!t || t->everything) {
		count = 0;
		return;
	}
	for (unsigned i = 0; i < t->count; i++)
		remove_overlapping(t->at[i], t->at[i] + REACH);
}

void sim_touch(struct sim_touched *t, uintptr_t p)
{
	if (p - CORE_ARENA >= CORE_ARENA_BYTES)
		return;
	if (t->count == SIM_MAX_TOUCHED)
		t->everything = true;
	else
		t->at[t->count++] = p;
}

int sim_output_of(const char *name)
{
	static const struct {
		const char *part;
		int parameter;
	} known[] = {
		{ "vectorized_elementwise_kernel", 2 }, { "unrolled_elementwise_kernel", 2 },
		{ "elementwise_kernel_with_index", 2 }, { "DeviceReduceSingleTileKernel", 1 },
		{ "CatArrayBatchedCopy", 0 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(name, known[i].part))
			return known[i].parameter;
	return SIM_OUTPUT_UNKNOWN;
}

static uintptr_t stack_top(void)
{
	static _Thread_local uintptr_t top;
	pthread_attr_t attributes;
	void *low;
	size_t size;

	if (!top && !pthread_getattr_np(pthread_self(), &attributes)) {
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
		top = (uintptr_t)low + size;
	}
	return top;
}

/* Its callers' frames lie above this one's, up to the top of the stack, all of it readable. */
__attribute__((noinline, no_sanitize("address", "thread"))) void
sim_touched_by(void **args, int output, struct sim_touched *t)
{
	uintptr_t bottom = (uintptr_t)__builtin_frame_address(0), top = stack_top();
	uintptr_t low = UINTPTR_MAX, high = 0;

	t->count = 0;
	t->everything = args && ((uintptr_t)args < bottom || (uintptr_t)args >= top);
	if (!args || t->everything)
		return;
	if (output >= 0) {
		sim_touch(t, *(const uintptr_t *)args[output]);
		return;
	}
	/* How many there are is not known: up to the first that cannot be one. */
	for (unsigned i = 0; i < MAX_PARAMETERS && (uintptr_t)(args + i + 1) <= top; i++) {
		uintptr_t p = (uintptr_t)args[i];

		if (p < bottom || p >= top)
			break;
		if (p < low)
			low = p;
		if (p > high)
			high = p;
	}
	if (!high)
		return;
	low &= -sizeof(uintptr_t);
	high += LAST_BYTES;
	if (high > low + SCAN_BYTES)
		high = low + SCAN_BYTES;
	if (high > top)
		high = top;
	for (; low + sizeof(uintptr_t) <= high; low += sizeof(uintptr_t))
		sim_touch(t, *(const uintptr_t *)low);
}
