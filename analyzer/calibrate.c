/* calibrate.c: see calibrate.h. */
#include "analyzer/calibrate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/definitions.h"
#include "analyzer/histogram.h"
#include "analyzer/memory.h"
#include "traces/knobs.h"

#define PAIRS     16 /* bare and traced */
#define LOOPS     9
#define LOOP_ROOM 32
#define KINDS_MAX 32

/* As calibrate.py names them. */
enum loop {
	LOOP_calls,
	LOOP_methods,
	LOOP_recursion,
	LOOP_properties,
	LOOP_generators,
	LOOP_native_generators,
	LOOP_native,
	LOOP_empty,
	LOOP_apart
};

static const char *const loop_names[LOOPS] = { "calls",      "methods",    "recursion",
					       "properties", "generators", "native_generators",
					       "native",     "empty",      "apart" };

/* The function of a loop whose spans are looked at in the trace. */
static const char *const loop_codes[LOOPS] = {
	[LOOP_calls] = "tare_call",
	[LOOP_properties] = "tare_property",
	[LOOP_generators] = "tare_generator",
};

struct c_kind {
	char name[20];
	double inside[PAIRS], outside[PAIRS], error;
	double more[PAIRS]; /* where they are apart */
	unsigned count, more_count;
};

struct measured {
	double ns[2][LOOPS][PAIRS];    /* a call; bare and traced */
	double duration[LOOPS][PAIRS]; /* of a span, as the trace has it */
	uint32_t distance[LOOPS];      /* as in FRAME, + 1 */
	struct c_kind kinds[KINDS_MAX];
	unsigned kind_count;
	char folder[64];
	int processor;
};

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(const double *values, unsigned count)
{
	double sorted[PAIRS];

	memcpy(sorted, values, count * sizeof(*values));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return count ? sorted[count / 2] : NAN;
}

static char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *say(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	return text;
}

/* ---------------------------------------------------------------- a process */

/* On one processor, so that bare and traced are on the same. */
static void stay(int processor)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	if (processor >= 0 && processor < CPU_SETSIZE) {
		CPU_SET(processor, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
}

static void become(const char *python, const char *library, const char *output, int processor,
		   int out)
{
	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		char name[64];

		snprintf(name, sizeof(name), KNOB_PREFIX "%s", knob_descs[id].name);
		unsetenv(name);
	}
	unsetenv("LD_PRELOAD");
	if (output) {
		setenv("LD_PRELOAD", library, 1);
		setenv(KNOB_PREFIX "OUTPUT", output, 1);
		setenv(KNOB_PREFIX "CALIBRATION", CALIBRATION_MEASURE, 1);
	}
	stay(processor);
	int nothing = open("/dev/null", O_RDWR);
	dup2(nothing, 0);
	dup2(out, 1);
	dup2(nothing, 2);
	/* With -S, nothing is called by which libtare would notice the interpreter. */
	execl(python, python, "-I", "-c", calibrate_program, (char *)NULL);
	_exit(127);
}

/* `output` NULL: bare. Fills the column `pair` of what was measured. */
static bool run(struct measured *measured, const char *python, const char *library,
		const char *output, unsigned pair)
{
	int ends[2], status = -1;
	unsigned lines = 0;
	char name[LOOP_ROOM];
	double count, ns;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	pid_t pid = fork();
	if (pid == 0)
		become(python, library, output, measured->processor, ends[1]);
	close(ends[1]);
	FILE *file = fdopen(ends[0], "r");
	while (file && fscanf(file, "%31s %lf %lf", name, &count, &ns) == 3)
		for (unsigned loop = 0; loop < LOOPS; loop++)
			if (!strcmp(name, loop_names[loop]) && count > 0) {
				measured->ns[output != NULL][loop][pair] = ns / count;
				lines++;
			}
	if (file)
		fclose(file);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status == 0 && lines == LOOPS;
}

/* ---------------------------------------------------------------- its trace */

static void add_kind(struct measured *measured, const struct record_CALIBRATION *record)
{
	struct c_kind *kind = measured->kinds;

	while (kind < measured->kinds + measured->kind_count &&
	       strcmp(kind->name, record->kind.data) != 0)
		kind++;
	if (kind == measured->kinds + KINDS_MAX || record->kind.length >= sizeof(kind->name))
		return;
	if (kind == measured->kinds + measured->kind_count)
		strcpy(measured->kinds[measured->kind_count++].name, record->kind.data);
	if (record->interval_ns) {
		if (kind->more_count < PAIRS)
			kind->more[kind->more_count++] = record->outside_ps / 1000.0;
		return;
	}
	if (kind->count == PAIRS)
		return;
	kind->inside[kind->count] = record->inside_ps / 1000.0;
	kind->outside[kind->count++] = record->outside_ps / 1000.0;
	kind->error = fmax(kind->error, record->error_ps / 1000.0);
}

struct open_span {
	uint64_t enter;
	unsigned loop; /* LOOPS: another function */
};

#define DEPTH_MAX 256

/* Before 3.11 code has no qualified name. */
static bool is_code_of(unsigned loop, const char *name)
{
	const char *dot = strchr(name, '.');

	return loop_codes[loop] && !strcmp(loop_codes[loop], dot ? dot + 1 : name);
}

static void read_spans(struct measured *measured, struct trace_reader *reader,
		       const struct definitions *definitions, struct histogram *durations)
{
	struct open_span stack[DEPTH_MAX];
	uint32_t depth = 0;
	struct trace_batch batch;

	while (trace_next_batch(reader, &batch))
		for (uint32_t i = 0; i < batch.count; i++) {
			const struct trace_event *event = &batch.events[i];

			if (event->code == TRACE_LEAVE && depth) {
				const struct open_span *span = &stack[--depth];

				if (depth < DEPTH_MAX && span->loop < LOOPS)
					histogram_add(&durations[span->loop],
						      event->time - span->enter);
			} else if (trace_event_descs[event->code].kind == TRACE_KIND_SPAN) {
				struct open_span span = { event->time, LOOPS };
				uint32_t code = event->code != TRACE_FRAME ?
							0 :
							id_map_get(&definitions->code_ids,
								   event->fields[0]);

				for (unsigned loop = 0; code && loop < LOOPS; loop++)
					if (is_code_of(loop, definitions->codes[code].name)) {
						span.loop = loop;
						measured->distance[loop] =
							(uint32_t)(event->fields[2] >> 1) + 1;
					}
				if (depth < DEPTH_MAX)
					stack[depth] = span;
				depth += depth < DEPTH_MAX;
			}
		}
}

static bool read_trace(struct measured *measured, const char *path, unsigned pair, char **why)
{
	char message[512];
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	struct histogram durations[LOOPS] = { 0 };
	struct definitions definitions = { 0 };

	if (!reader) {
		*why = say("%s", message);
		return false;
	}
	definitions_load(&definitions, reader);
	for (uint32_t i = 0; i < definitions.calibration_count; i++)
		add_kind(measured, &definitions.calibrations[i]);
	read_spans(measured, reader, &definitions, durations);
	for (unsigned loop = 0; loop < LOOPS; loop++) {
		measured->duration[loop][pair] =
			histogram_percentile(&durations[loop], 0.5) * trace_unit_ns(reader);
		histogram_free(&durations[loop]);
	}
	bool seen = !isnan(measured->duration[LOOP_calls][pair]);
	if (!seen)
		*why = say("its Python functions are not recorded: %s",
			   definitions_layer_off(&definitions, "frames") ?
				   "that interpreter is not known" :
				   "nothing was seen");
	definitions_free(&definitions);
	trace_close(reader);
	return seen;
}

/* ---------------------------------------------------------------- what it comes to */

/* ns that tare adds to a call of that loop, in the middle of all pairs. */
static double added(const struct measured *measured, enum loop loop)
{
	double differences[PAIRS];

	for (unsigned pair = 0; pair < PAIRS; pair++)
		differences[pair] = measured->ns[1][loop][pair] - measured->ns[0][loop][pair];
	return fmax(median(differences, PAIRS), 0);
}

static double interval(const struct measured *measured, enum loop loop)
{
	return median(measured->ns[1][loop], PAIRS) / 2;
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

/* A kind of frame: what is inside of it is the same for all. */
struct frames {
	double close, apart; /* intervals */
	double inside, more; /* more: where they are apart */
	double error;        /* of the sum */
};

static void add_frames(struct calibrate_result *result, const struct frames *frames,
		       const char *kind, uint32_t distance, double sum)
{
	double inside = fmin(frames->inside, sum), error = frames->error * sum;

	add_weight(result, kind, distance, frames->close, inside, sum - inside, error);
	add_weight(result, kind, distance, frames->apart, inside + frames->more / 2,
		   sum - inside + frames->more / 2, error);
}

static void add_c_kind(struct calibrate_result *result, const struct frames *frames,
		       const char *name, const struct c_kind *kind)
{
	double inside = median(kind->inside, kind->count);
	double outside = median(kind->outside, kind->count);
	double more = fmax(frames->more, median(kind->more, kind->more_count));
	bool single = !strcmp(name, "op") || !strcmp(name, "mark");

	add_weight(result, name, 0, frames->close, inside, outside, kind->error);
	add_weight(result, name, 0, frames->apart, inside + (single ? 0 : more / 2),
		   outside + (single ? more : more / 2), kind->error + more / 2);
}

static void conclude(struct calibrate_result *result, const struct measured *measured)
{
	/* Kinds that a loop of C cannot make: as the one that does most like it. */
	static const char *const alike[][2] = { { "callback", "section" },
						{ "node", "section" },
						{ "op_span", "call" } };
	double sums[3] = { added(measured, LOOP_calls), added(measured, LOOP_methods),
			   added(measured, LOOP_recursion) };
	double call = (sums[0] + sums[1] + sums[2]) / 3;
	double least = fmin(fmin(sums[0], sums[1]), sums[2]);
	double most = fmax(fmax(sums[0], sums[1]), sums[2]);
	/* A function that does nothing has about as many instructions as the turn of an empty loop. */
	double body = median(measured->ns[0][LOOP_empty], PAIRS);
	struct frames frames = {
		.close = interval(measured, LOOP_calls),
		.apart = interval(measured, LOOP_apart),
		.inside = fmax(median(measured->duration[LOOP_calls], PAIRS) - body, 0),
		.more = fmax(added(measured, LOOP_apart) - call, 0),
		.error = call > 0 ? (most - least) / 2 / call : 0,
	};
	uint32_t direct = measured->distance[LOOP_calls],
		 property = measured->distance[LOOP_properties];

	*result = (struct calibrate_result){ 0 };
	if (!(frames.apart > frames.close))
		frames.apart = frames.close + 1;
	add_frames(result, &frames, "frame", 0, added(measured, LOOP_native));
	add_frames(result, &frames, "frame", direct, call);
	if (property && property != direct)
		add_frames(result, &frames, "frame", property, added(measured, LOOP_properties));
	add_frames(result, &frames, "generator", 0, added(measured, LOOP_native_generators));
	if (measured->distance[LOOP_generators])
		add_frames(result, &frames, "generator", measured->distance[LOOP_generators],
			   added(measured, LOOP_generators));
	for (unsigned i = 0; i < measured->kind_count; i++) {
		const struct c_kind *kind = &measured->kinds[i];

		add_c_kind(result, &frames, kind->name, kind);
		for (unsigned j = 0; j < sizeof(alike) / sizeof(*alike); j++)
			if (!strcmp(alike[j][1], kind->name))
				add_c_kind(result, &frames, alike[j][0], kind);
	}
}

bool calibrate_measure(struct calibrate_result *result, const char *python, const char *library,
		       char **why)
{
	struct measured *measured = memory_zero(1, sizeof(*measured));
	const char *temporary = getenv("TMPDIR");
	char trace[128];
	bool fine = true;

	measured->processor = sched_getcpu();
	snprintf(measured->folder, sizeof(measured->folder), "%s/tare-calibrate-XXXXXX",
		 temporary && strlen(temporary) < 32 && *temporary ? temporary : "/tmp");
	if (!mkdtemp(measured->folder)) {
		*why = say("%s: %s", measured->folder, strerror(errno));
		free(measured);
		return false;
	}
	snprintf(trace, sizeof(trace), "%s/trace.tare", measured->folder);
	for (unsigned pair = 0; pair < PAIRS && fine; pair++) {
		bool odd = pair & 1;

		/* What drifts in the machine is now on this side, now on that. */
		fine = run(measured, python, library, odd ? trace : NULL, pair) &&
		       run(measured, python, library, odd ? NULL : trace, pair);
		if (!fine)
			*why = say("%s: the program that measures it failed", python);
		else
			fine = read_trace(measured, trace, pair, why);
		unlink(trace);
	}
	rmdir(measured->folder);
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
	char *temporary = say("%s.%d", path, (int)getpid());
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
		*why = say("%s: %s", path, strerror(errno));
		unlink(temporary);
		fine = false;
	}
	free(temporary);
	return fine;
}
