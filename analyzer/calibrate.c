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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/definitions.h"
#include "analyzer/histogram.h"
#include "analyzer/memory.h"
#include "traces/knobs.h"

#define PAIRS     8  /* of processes, bare and traced */
#define TURNS     16 /* of each process */
#define LOOP_ROOM 32
#define KINDS_MAX 32

enum loop {
#define LOOP(name, function, kind) LOOP_##name,
#include "analyzer/calibrate_loops.def"
#undef LOOP
	LOOPS
};

static const struct {
	const char *name, *function, *kind;
} loops[LOOPS] = {
#define LOOP(name, function, kind) { #name, function, kind },
#include "analyzer/calibrate_loops.def"
#undef LOOP
};

/*
 * Up to so long after the last event, what an event needs is at hand; from so long after it on, it is not, and costs
 * more. Programs show it: Python calls up to 150 ns apart cost what those in tight loops do, and between events as
 * far apart as in PyTorch's modules they cost about what own_cost.c finds after using the caches for something else.
 */
#define CLOSE_NS 150
#define APART_NS 1000

/* So many spans of a call in the loop, of some hundred, tell that all are recorded. */
#define SPANS_OF_A_CALL 50

struct c_kind {
	char name[20];
	double inside[PAIRS], outside[PAIRS], error;
	double more[PAIRS]; /* where they are apart */
	unsigned count, more_count;
};

struct measured {
	double ns[2][LOOPS][PAIRS * TURNS]; /* a call; bare and traced */
	double calls[LOOPS];                /* of a round */
	double duration[LOOPS][PAIRS];      /* of a span, as the trace has it */
	uint64_t spans[LOOPS];              /* in the last trace */
	uint32_t distance[LOOPS];           /* as in FRAME, + 1 */
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
	double sorted[PAIRS * TURNS];

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

struct child {
	pid_t pid;
	int line;  /* what it reads from and writes to */
	FILE *out; /* of it, to read from */
};

static void become(const char *python, const char *library, const char *output, int processor,
		   int line)
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
	dup2(line, 0);
	dup2(line, 1);
	dup2(open("/dev/null", O_RDWR), 2);
	/* With -S, nothing is called by which libtare would notice the interpreter. */
	execl(python, python, "-I", "-c", calibrate_program, (char *)NULL);
	_exit(127);
}

/* `output` NULL: bare. */
static struct child child_start(const struct measured *measured, const char *python,
				const char *library, const char *output)
{
	struct child child = { .pid = -1, .line = -1 };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return child;
	child.pid = fork();
	if (child.pid == 0)
		become(python, library, output, measured->processor, ends[1]);
	close(ends[1]);
	child.line = ends[0];
	child.out = fdopen(ends[0], "r");
	return child;
}

/* Lets it measure once. Fills the column `turn` of what was measured. */
static bool child_measure(struct child *child, struct measured *measured, bool traced,
			  unsigned turn)
{
	char name[LOOP_ROOM];
	double count, ns;

	if (!child->out || send(child->line, "\n", 1, MSG_NOSIGNAL) != 1)
		return false;
	for (enum loop loop = 0; loop < LOOPS; loop++) {
		if (fscanf(child->out, "%31s %lf %lf", name, &count, &ns) != 3 || count <= 0 ||
		    strcmp(name, loops[loop].name) != 0)
			return false;
		measured->ns[traced][loop][turn] = ns / count;
		measured->calls[loop] = count;
	}
	return true;
}

/* False where it failed. */
static bool child_end(struct child *child)
{
	int status = -1;

	if (child->line >= 0)
		shutdown(child->line, SHUT_WR);
	while (child->pid > 0 && waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (child->out)
		fclose(child->out);
	return child->pid > 0 && status == 0;
}

/* What drifts in the machine is now on this side, now on that. */
static bool run_pair(struct measured *measured, const char *python, const char *library,
		     const char *output, unsigned pair)
{
	struct child children[2] = {
		child_start(measured, python, library, NULL),
		child_start(measured, python, library, output),
	};
	bool fine = true;

	for (unsigned turn = 0; turn < TURNS && fine; turn++) {
		bool first = turn & 1;
		unsigned column = pair * TURNS + turn;

		fine = child_measure(&children[first], measured, first, column) &&
		       child_measure(&children[!first], measured, !first, column);
	}
	fine &= child_end(&children[0]);
	fine &= child_end(&children[1]);
	return fine;
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

	return !strcmp(loops[loop].function, dot ? dot + 1 : name);
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
		measured->spans[loop] = durations[loop].count;
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

/* ns that tare adds to a call of that loop, in the middle of all turns. */
static double added(const struct measured *measured, enum loop loop)
{
	double differences[PAIRS * TURNS];

	for (unsigned turn = 0; turn < PAIRS * TURNS; turn++)
		differences[turn] = measured->ns[1][loop][turn] - measured->ns[0][loop][turn];
	return fmax(median(differences, PAIRS * TURNS), 0);
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
	add_weight(result, kind, distance, APART_NS, inside + frames->more / 2,
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
	return *loops[loop].kind && measured->distance[loop] &&
	       (double)measured->spans[loop] >= SPANS_OF_A_CALL * measured->calls[loop];
}

static bool same_way(const struct measured *measured, enum loop a, enum loop b)
{
	return tells(measured, a) && tells(measured, b) && !strcmp(loops[a].kind, loops[b].kind) &&
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
		add_frames(result, frames, loops[loop].kind, measured->distance[loop], sum,
			   fmax(error, frames->error));
	}
}

static void add_c_kind(struct calibrate_result *result, const char *name, const struct c_kind *kind)
{
	double inside = median(kind->inside, kind->count);
	double outside = median(kind->outside, kind->count);
	double more = fmax(median(kind->more, kind->more_count), 0);
	bool single = !strcmp(name, "op") || !strcmp(name, "mark");

	add_weight(result, name, 0, CLOSE_NS, inside, outside, kind->error);
	add_weight(result, name, 0, APART_NS, inside + (single ? 0 : more / 2),
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
	double body = median(measured->ns[0][LOOP_empty], PAIRS * TURNS);
	struct frames frames = {
		.more = more_of(measured, "section"),
		.inside = fmax(median(measured->duration[LOOP_calls], PAIRS) - body, 0),
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
		fine = run_pair(measured, python, library, trace, pair);
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
