/* calibrate.c: see calibrate.h. */
#include "analyzer/calibrate.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/calibrate_run.h"
#include "analyzer/memory.h"

/*
 * Intervals (of which kind: weight.h) up to which all that a hook needs is at hand, and from which on all of it has to
 * be fetched: then it costs what own_cost.c finds after using the caches for something else. Programs show them:
 * Python calls up to 150 ns apart cost no more than in tight loops, those between which PyTorch runs all of it; so
 * do operators of a training step of half a millisecond, and those of short loops a part of it.
 */
#define CLOSE_NS       150
#define APART_FRAME_NS 1000
#define APART_CALL_NS  500000

/* So many spans of a call in the loop, of some hundred, tell that all are recorded. */
#define SPANS_OF_A_CALL 50

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(const double *values, unsigned count)
{
	double sorted[CALIBRATE_PAIRS * CALIBRATE_TURNS];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return count ? sorted[count / 2] : NAN;
}

/* ---------------------------------------------------------------- what it comes to */

/* Others on the machine only slow it: each value is a median already. */
static double least(const double *values, unsigned count)
{
	double found = count ? values[0] : NAN;

	for (unsigned i = 1; i < count; i++)
		found = fmin(found, values[i]);
	return found;
}

/* ns that tare adds to a call of that loop, in the middle of the turns that others slowed least. */
static double added(const struct measured *measured, enum loop loop)
{
	const double *bare = measured->ns[0][loop], *traced = measured->ns[1][loop];
	double differences[CALIBRATE_PAIRS * CALIBRATE_TURNS];
	double limit = median(bare, CALIBRATE_PAIRS * CALIBRATE_TURNS);
	unsigned count = 0;

	for (unsigned turn = 0; turn < CALIBRATE_PAIRS * CALIBRATE_TURNS; turn++)
		if (bare[turn] <= limit)
			differences[count++] = traced[turn] - bare[turn];
	return fmax(median(differences, count), 0);
}

static void add_weight(struct calibrate_result *result, const char *kind, uint32_t distance,
		       double interval_ns, double inside, double outside, double error)
{
	struct calibrate_weight *weight = &result->weights[result->count];

	if (result->count == CALIBRATION_WEIGHTS_MAX)
		return;
	result->count++;
	snprintf(weight->kind, sizeof(weight->kind), "%s", kind);
	weight->distance = distance;
	weight->interval_ns = (uint32_t)interval_ns;
	weight->inside_ns = fmax(inside, 0);
	weight->outside_ns = fmax(outside, 0);
	weight->error_ns = fmax(error, 0);
}

/* What is the same for all frames. */
struct frames {
	double inside;
	double more;  /* where they are apart */
	double error; /* relative to the sum, where one loop alone tells it */
};

static void add_frames(struct calibrate_result *result, const struct frames *frames,
		       const char *kind, uint32_t distance, double sum, double error)
{
	double inside = fmin(frames->inside, sum);

	error *= sum;
	add_weight(result, kind, distance, CLOSE_NS, inside, sum - inside, error);
	add_weight(result, kind, distance, APART_FRAME_NS, inside + frames->more / 2,
		   sum - inside + frames->more / 2, error);
}

/* What is added to a span of the loop's function. A delegation is a generator's frame and one within it. */
static double added_to_span(const struct measured *measured, enum loop loop)
{
	double sum = added(measured, loop);

	return loop == LOOP_delegations ? fmax(sum - added(measured, LOOP_generators), 0) : sum;
}

/* Whether the loop tells what a frame costs that is entered as its function's are. */
static bool tells(const struct measured *measured, enum loop loop)
{
	return *calibrate_loops[loop].kind && measured->distance[loop] &&
	       (double)measured->spans[loop] >= SPANS_OF_A_CALL * measured->calls[loop];
}

static bool same_way(const struct measured *measured, enum loop a, enum loop b)
{
	return tells(measured, a) && tells(measured, b) &&
	       !strcmp(calibrate_loops[a].kind, calibrate_loops[b].kind) &&
	       measured->distance[a] == measured->distance[b];
}

/*
 * The mean of all loops whose frames are entered as those of this one. A delegation that looks like a generator's
 * frame is the rarer of both: it counts as error.
 */
static double mean_added(const struct measured *measured, enum loop loop, double *error_p)
{
	double sum = 0, least = INFINITY, most = 0, count = 0;

	for (enum loop other = 0; other < LOOPS; other++)
		if (same_way(measured, loop, other)) {
			double its = added_to_span(measured, other);
			bool rare = other == LOOP_delegations && loop != other;

			sum += rare ? 0 : its;
			count += !rare;
			least = fmin(least, its);
			most = fmax(most, its);
		}
	*error_p = sum > 0 ? (most - least) / 2 / (sum / count) : 0;
	return count ? sum / count : 0;
}

static void add_all_frames(struct calibrate_result *result, const struct measured *measured,
			   const struct frames *frames)
{
	add_frames(result, frames, "frame", 0, added(measured, LOOP_native), frames->error);
	add_frames(result, frames, "generator", 0, added(measured, LOOP_native_generators),
		   frames->error);
	for (enum loop loop = 0; loop < LOOPS; loop++) {
		enum loop first = 0;
		double error, sum;

		while (first < loop && !same_way(measured, loop, first))
			first++;
		if (first < loop || !tells(measured, loop))
			continue;
		sum = mean_added(measured, loop, &error);
		add_frames(result, frames, calibrate_loops[loop].kind, measured->distance[loop],
			   sum, fmax(error, frames->error));
	}
}

static void add_c_kind(struct calibrate_result *result, const char *name, const struct c_kind *kind)
{
	double inside = least(kind->inside, kind->count);
	double outside = least(kind->outside, kind->count);
	double more = fmax(median(kind->more, kind->more_count), 0);
	bool single = !strcmp(name, "op") || !strcmp(name, "mark");

	add_weight(result, name, 0, CLOSE_NS, inside, outside, kind->error);
	add_weight(result, name, 0, APART_CALL_NS, inside + (single ? 0 : more / 2),
		   outside + (single ? more : more / 2), kind->error + more / 2);
}

/* A frame's hook is most like that of a section: where they are apart, so is what it costs more. */
static double more_of(const struct measured *measured, const char *name)
{
	for (unsigned i = 0; i < measured->kind_count; i++)
		if (!strcmp(measured->kinds[i].name, name))
			return fmax(median(measured->kinds[i].more, measured->kinds[i].more_count),
				    0);
	return 0;
}

static void conclude(struct calibrate_result *result, const struct measured *measured)
{
	/* Kinds that a loop of C cannot make: as the one that does most like it. */
	static const char *const alike[][2] = { { "callback", "section" },
						{ "node", "section" },
						{ "op_span", "call" } };
	/* A function that does nothing has about as many instructions as the turn of an empty loop. */
	double body = median(measured->ns[0][LOOP_empty], CALIBRATE_PAIRS * CALIBRATE_TURNS);
	struct frames frames = {
		.more = more_of(measured, "section"),
		.inside = fmax(median(measured->duration[LOOP_calls], CALIBRATE_PAIRS) - body, 0),
	};
	mean_added(measured, LOOP_calls, &frames.error);

	*result = (struct calibrate_result){ 0 };
	add_all_frames(result, measured, &frames);
	for (unsigned i = 0; i < measured->kind_count; i++) {
		const struct c_kind *kind = &measured->kinds[i];

		add_c_kind(result, kind->name, kind);
		for (unsigned j = 0; j < sizeof(alike) / sizeof(*alike); j++)
			if (!strcmp(alike[j][1], kind->name))
				add_c_kind(result, alike[j][0], kind);
	}
}

bool calibrate_measure(struct calibrate_result *result, const char *python, const char *library,
		       char **why)
{
	struct measured *measured = memory_zero(1, sizeof(*measured));
	bool fine = calibrate_run(measured, python, library, why);

	if (fine)
		conclude(result, measured);
	free(measured);
	return fine;
}

/* ---------------------------------------------------------------- keeping it */

static void make_folders(const char *path)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(folder, 0777);
		*slash = '/';
	}
}

/* Beside it and then in its place: readers find a whole one or none. */
bool calibrate_keep(const struct calibrate_result *result, const char *path, const char *key,
		    char **why)
{
	char *temporary = calibrate_say("%s.%d", path, (int)getpid());
	FILE *file;

	if (!temporary)
		return false;
	make_folders(path);
	file = fopen(temporary, "we");
	if (file) {
		fprintf(file, CALIBRATION_FIRST_LINE "%s\n", key);
		for (unsigned i = 0; i < result->count; i++) {
			const struct calibrate_weight *weight = &result->weights[i];

			fprintf(file, "weight %s %u %u %.0f %.0f %.0f\n", weight->kind,
				weight->distance, weight->interval_ns, weight->inside_ns * 1000,
				weight->outside_ns * 1000, weight->error_ns * 1000);
		}
		fputs(CALIBRATION_LAST_LINE, file);
	}
	bool fine = file && !ferror(file);
	if (file && fclose(file) != 0)
		fine = false;
	if (!fine || rename(temporary, path) != 0) {
		*why = calibrate_say("%s: %s", path, strerror(errno));
		unlink(temporary);
		fine = false;
	}
	free(temporary);
	return fine;
}
