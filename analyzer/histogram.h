/*
 * histogram.h: how values (times, in clock units) are distributed, in little memory.
 *
 * For analyzer/'s model. Buckets are 1/64 of a power of two wide: a percentile is off by at most 1.6 %
 * of its value, and exact where all values are equal or below 64.
 */
#pragma once

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_OCTAVES  44 /* above 2^49 all is one bucket: days, in ns */

struct histogram {
	uint64_t count, least, most;
	uint32_t *octaves[HISTOGRAM_OCTAVES]; /* 2^HISTOGRAM_SUB_BITS buckets each, made when needed */
};

static inline void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count);

/* Adds all of `from`; what is above `cap` counts as `cap`. */
void histogram_merge(struct histogram *into, const struct histogram *from, uint64_t cap);

/* The value that a share `rank` (0 to 1) of all are below; NAN where there is none. */
double histogram_percentile(const struct histogram *histogram, double rank);

/* The sum of the values, of which what is above `cap` counts as `cap`. `sum`: of them as they are. */
double histogram_capped_sum(const struct histogram *histogram, double sum, double cap);

void histogram_free(struct histogram *histogram);

/* Of the values of octave 0 each has a bucket; octave n has the 64 buckets of 2^(n-1) from 2^(n+5) on. */
static inline unsigned histogram_octave(uint64_t value, unsigned *sub_p)
{
	const unsigned subs = 1u << HISTOGRAM_SUB_BITS;
	unsigned octave = value < subs ? 0 :
					 64 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(value);

	if (__builtin_expect(octave >= HISTOGRAM_OCTAVES, 0)) {
		*sub_p = subs - 1;
		return HISTOGRAM_OCTAVES - 1;
	}
	*sub_p = (unsigned)(octave ? value >> (octave - 1) : value) & (subs - 1);
	return octave;
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
	unsigned sub, octave = histogram_octave(value, &sub);
	uint32_t *buckets = histogram->octaves[octave];

	/* The common case: not the first of its size, and within what was seen. */
	if (__builtin_expect(buckets && value >= histogram->least && value <= histogram->most &&
				     buckets[sub] != UINT32_MAX,
			     1)) {
		buckets[sub]++;
		histogram->count++;
	} else {
		histogram_add_many(histogram, value, 1);
	}
}
