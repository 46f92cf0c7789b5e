/* calibrate_run.c: see calibrate_run.h. */
#include "analyzer/calibrate_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/calibrate.h"
#include "analyzer/definitions.h"
#include "analyzer/histogram.h"
#include "analyzer/memory.h"
#include "traces/knobs.h"
#include "traces/reader.h"

#define LOOP_ROOM 32

const struct calibrate_loop calibrate_loops[LOOPS] = {
#define LOOP(name, function, kind) { #name, function, kind },
#include "analyzer/calibrate_loops.def"
#undef LOOP
};

char *calibrate_say(const char *format, ...)
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
static struct child child_start(const char *python, const char *library, const char *output,
				int processor)
{
	struct child child = { .pid = -1, .line = -1 };
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return child;
	child.pid = fork();
	if (child.pid == 0)
		become(python, library, output, processor, ends[1]);
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
		    strcmp(name, calibrate_loops[loop].name) != 0)
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
		     const char *output, int processor, unsigned pair)
{
	struct child children[2] = {
		child_start(python, library, NULL, processor),
		child_start(python, library, output, processor),
	};
	bool fine = true;

	for (unsigned turn = 0; turn < CALIBRATE_TURNS && fine; turn++) {
		bool first = turn & 1;
		unsigned column = pair * CALIBRATE_TURNS + turn;

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
	if (kind == measured->kinds + CALIBRATE_KINDS || record->kind.length >= sizeof(kind->name))
		return;
	if (kind == measured->kinds + measured->kind_count)
		strcpy(measured->kinds[measured->kind_count++].name, record->kind.data);
	if (record->interval_ns) {
		if (kind->more_count < CALIBRATE_PAIRS)
			kind->more[kind->more_count++] = record->outside_ps / 1000.0;
		return;
	}
	if (kind->count == CALIBRATE_PAIRS)
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

	return !strcmp(calibrate_loops[loop].function, dot ? dot + 1 : name);
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
		*why = calibrate_say("%s", message);
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
		*why = calibrate_say("its Python functions are not recorded: %s",
				     definitions_layer_off(&definitions, "frames") ?
					     "that interpreter is not known" :
					     "nothing was seen");
	definitions_free(&definitions);
	trace_close(reader);
	return seen;
}

/* ---------------------------------------------------------------- all of them */

bool calibrate_run(struct measured *measured, const char *python, const char *library, char **why)
{
	const char *temporary = getenv("TMPDIR");
	int processor = sched_getcpu();
	char folder[64], trace[128];
	bool fine = true;

	snprintf(folder, sizeof(folder), "%s/tare-calibrate-XXXXXX",
		 temporary && strlen(temporary) < 32 && *temporary ? temporary : "/tmp");
	if (!mkdtemp(folder)) {
		*why = calibrate_say("%s: %s", folder, strerror(errno));
		return false;
	}
	snprintf(trace, sizeof(trace), "%s/trace.tare", folder);
	for (unsigned pair = 0; pair < CALIBRATE_PAIRS && fine; pair++) {
		fine = run_pair(measured, python, library, trace, processor, pair);
		if (!fine)
			*why = calibrate_say("%s: the program that measures it failed", python);
		else
			fine = read_trace(measured, trace, pair, why);
		unlink(trace);
	}
	rmdir(folder);
	return fine;
}
