/* histogram.c: see histogram.h. */
#include "analyzer/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "analyzer/memory.h"

#define SUBS (1u << HISTOGRAM_SUB_BITS)

static double bucket_start(unsigned octave, unsigned sub)
{
	return octave ? ldexp(SUBS + sub, (int)octave - 1) : sub;
}

static double bucket_width(unsigned octave)
{
	return octave ? ldexp(1, (int)octave - 1) : 0;
}

void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count)
{
	unsigned sub, octave = histogram_octave(value, &sub);
	uint32_t **buckets = &histogram->octaves[octave];

	if (__builtin_expect(!*buckets, 0))
		*buckets = memory_zero(SUBS, sizeof(**buckets));
	if (!count)
		return;
	(*buckets)[sub] = count < UINT32_MAX - (*buckets)[sub] ? (*buckets)[sub] + (uint32_t)count :
								 UINT32_MAX;
	if (!histogram->count || value < histogram->least)
		histogram->least = value;
	if (value > histogram->most)
		histogram->most = value;
	histogram->count += count;
}

/* Stands for the values of a bucket where they have to be one. */
static double bucket_middle(const struct histogram *histogram, unsigned octave, unsigned sub)
{
	double middle = bucket_start(octave, sub) + bucket_width(octave) / 2;

	return fmin(fmax(middle, (double)histogram->least), (double)histogram->most);
}

void histogram_merge(struct histogram *into, const struct histogram *from, uint64_t cap)
{
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned sub = 0; from->octaves[octave] && sub < SUBS; sub++) {
			uint32_t count = from->octaves[octave][sub];

			if (!count)
				continue;
			uint64_t value = (uint64_t)bucket_middle(from, octave, sub);
			histogram_add_many(into, value < cap ? value : cap, count);
		}
	if (from->count) {
		uint64_t least = from->least < cap ? from->least : cap;
		uint64_t most = from->most < cap ? from->most : cap;

		into->least = least < into->least ? least : into->least;
		into->most = most > into->most ? most : into->most;
	}
}

double histogram_percentile(const struct histogram *histogram, double rank)
{
	double target = rank * (double)histogram->count, below = 0;

	if (!histogram->count)
		return NAN;
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned sub = 0; histogram->octaves[octave] && sub < SUBS; sub++) {
			double count = histogram->octaves[octave][sub];

			if (count > 0 && below + count >= target) {
				double value =
					bucket_start(octave, sub) +
					bucket_width(octave) * fmax(target - below, 0) / count;

				return fmin(fmax(value, (double)histogram->least),
					    (double)histogram->most);
			}
			below += count;
		}
	return (double)histogram->most;
}

double histogram_capped_sum(const struct histogram *histogram, double sum, double cap)
{
	double capped = 0;

	if (!histogram->count || (double)histogram->most <= cap)
		return sum;
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		for (unsigned sub = 0; histogram->octaves[octave] && sub < SUBS; sub++)
			if (histogram->octaves[octave][sub])
				capped += histogram->octaves[octave][sub] *
					  fmin(bucket_middle(histogram, octave, sub), cap);
	return capped;
}

void histogram_free(struct histogram *histogram)
{
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++)
		free(histogram->octaves[octave]);
	*histogram = (struct histogram){ 0 };
}
