/* outcome.c: see outcome.h. */
#include "analyzer/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/display.h"
#include "analyzer/launch.h"
#include "analyzer/memory.h"
#include "analyzer/message.h"
#include "traces/knobs.h"
#include "traces/layout.h"
#include "traces/reader.h"

#define LISTED_MAX   8u
#define PROGRAMS_MAX 64u /* that are told apart */

/* What the journal tells. Texts are the first of their kind, NULL: there was none. */
struct outcome {
	unsigned traces, failures;
	int error; /* of the first failure: */
	char *failed;
	char *version;   /* of the first Python that was ready */
	char *layer;     /* "NAME: WHY" */
	unsigned loaded; /* processes */
	struct program { /* that started with libtare.so */
		char *path;
		pid_t pid; /* the newest */
	} programs[PROGRAMS_MAX];
	unsigned program_count;
};

static void say_trace(const char *path)
{
	struct trace_header header = { .stopped = TRACE_STOP_NONE };
	char size[TEXT_NUMBER_ROOM];
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) != 0) {
		complain("trace: %s (gone: %s)", path, strerror(errno));
	} else {
		bool known = pread(fd, &header, sizeof(header), 0) == sizeof(header);
		/* That TARE_DURATION is over is as was asked for. */
		const char *reason = known && header.stopped != TRACE_STOP_DURATION ?
					     trace_stop_text(&header) :
					     NULL;
		const char *error = reason && header.stop_errno ? strerror((int)header.stop_errno) :
								  NULL;

		text_bytes(size, (double)status.st_size);
		complain("trace: %s (%s)%s%s%s%s", path, size, reason ? "; it ends early: " : "",
			 reason ? reason : "", error ? ": " : "", error ? error : "");
	}
	if (fd >= 0)
		close(fd);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add_program(struct outcome *outcome, const char *path, pid_t pid)
{
	unsigned i = 0;

	outcome->loaded++;
	while (i < outcome->program_count && strcmp(outcome->programs[i].path, path) != 0)
		i++;
	if (i == PROGRAMS_MAX)
		return;
	if (i == outcome->program_count)
		outcome->programs[outcome->program_count++].path = strdup(path);
	outcome->programs[i].pid = pid;
}

static void keep_first(char **text_p, const char *text)
{
	if (!*text_p)
		*text_p = strdup(text);
}

/* "WHAT PID REST" */
static void read_line(struct outcome *outcome, const char *line)
{
	char what[16];
	int pid, at = 0, error, path = 0;

	if (sscanf(line, "%15s %d %n", what, &pid, &at) < 2 || !at)
		return;
	const char *rest = line + at;
	if (!strcmp(what, "opened")) {
		if (outcome->traces++ < LISTED_MAX)
			say_trace(rest);
	} else if (!strcmp(what, "failed") && sscanf(rest, "%d %n", &error, &path) == 1 && path) {
		if (!outcome->failures++)
			outcome->error = error;
		keep_first(&outcome->failed, rest + path);
	} else if (!strcmp(what, "python")) {
		keep_first(&outcome->version, rest);
	} else if (!strcmp(what, "layer")) {
		keep_first(&outcome->layer, rest);
	} else if (!strcmp(what, "loaded")) {
		add_program(outcome, rest, pid);
	}
}

static void read_journal(struct outcome *outcome, FILE *journal)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, journal)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		read_line(outcome, line);
	}
	free(line);
}

/* ---------------------------------------------------------------- why there is no trace */

static const char *failure_advice(int error)
{
	switch (error) {
	case ENOENT:
		return "no such folder; make it, or choose another with -o (of a missing path "
		       "only the last folder is made)";
	case ENOTDIR: return "a part of its path is a file; choose another with -o";
	case EACCES:
	case EPERM: return "not writable for this user; choose another folder with -o";
	case EROFS: return "that file system is read-only; choose another folder with -o";
	case ENOSPC:
	case EDQUOT: return "no room is left there; make some, or choose another folder with -o";
	case EFBIG: return "files may not grow that large (ulimit -f); raise that limit";
	case EEXIST:
		return "that name and a thousand more are taken; remove old traces, or put %p and "
		       "%t into the name";
	case ENAMETOOLONG: return "that path is too long; choose a shorter one with -o";
	case EMFILE:
	case ENFILE:
		return "the program has as many files open as it may (ulimit -n); raise that limit";
	default: return strerror(error);
	}
}

static void say_failures(const struct outcome *outcome)
{
	complain("no trace of %u process%s: cannot create %s: %s", outcome->failures,
		 outcome->failures > 1 ? "es" : "", outcome->failed,
		 failure_advice(outcome->error));
}

/* Who started it, as far as that was a program with libtare.so. */
static const char *launcher_of(const struct outcome *outcome, const struct watch_found *found)
{
	const char *launcher = NULL;

	for (unsigned i = 0; i < outcome->program_count; i++) {
		const struct program *program = &outcome->programs[i];

		/* By exec it has the same number. */
		if (program->pid == found->pid || (program->pid == found->parent && !launcher))
			launcher = name_of(program->path);
	}
	return launcher ? launcher : "what started it";
}

static void say_not_preloaded(const struct outcome *outcome, const struct watch_found *found)
{
	const char *name = name_of(found->path);

	if (found->foreign)
		complain(
			"no trace: %s (pid %d) ran as another user, for whom LD_PRELOAD is taken out of "
			"the environment (sudo, su); put 'tare record' behind that: sudo tare record "
			"-- %s ...",
			name, (int)found->pid, name);
	else
		complain("no trace: %s (pid %d) ran without LD_PRELOAD: %s took it out of the "
			 "environment; leave it there, or put 'tare record' directly before %s",
			 name, (int)found->pid, launcher_of(outcome, found), name);
}

/* A program that goes on after the command has ended. */
static const struct program *still_running(const struct outcome *outcome)
{
	for (unsigned i = 0; i < outcome->program_count; i++)
		if (kill(outcome->programs[i].pid, 0) == 0)
			return &outcome->programs[i];
	return NULL;
}

static const struct program *python_among(const struct outcome *outcome)
{
	for (unsigned i = 0; i < outcome->program_count; i++)
		if (!strncmp(name_of(outcome->programs[i].path), "python", 6))
			return &outcome->programs[i];
	return NULL;
}

/* "sh, env and 3 more"; free it. */
static char *programs_text(const struct outcome *outcome)
{
	char *out;
	size_t size;
	FILE *text = open_memstream(&out, &size);

	for (unsigned i = 0; i < outcome->program_count && i < 4; i++)
		fprintf(text, "%s%s", i ? ", " : "", name_of(outcome->programs[i].path));
	if (outcome->program_count > 4)
		fprintf(text, " and %u more", outcome->program_count - 4);
	fclose(text);
	return out;
}

static void say_nothing_recorded(const struct outcome *outcome)
{
	const char *delay = getenv(KNOB_PREFIX "DELAY");

	if (outcome->layer)
		complain(
			"no trace: %s; nothing else was called that could be recorded. CPython 3.9 to "
			"3.14 with a GIL is wanted",
			outcome->layer);
	else if (delay && strtod(delay, NULL) > 0)
		complain("no trace: Python %s ran, and ended before " KNOB_PREFIX
			 "DELAY (%s s) was over",
			 outcome->version, delay);
	else
		complain(
			"no trace: Python %s ran, but did nothing of what was to be recorded (" KNOB_PREFIX
			"LAYERS, " KNOB_PREFIX "CHILDREN)",
			outcome->version);
}

static void say_unreached(const struct outcome *outcome, const char *command)
{
	const struct program *program = still_running(outcome);

	if (program) {
		complain(
			"no trace yet: %s (pid %d) still runs, and %s, which started it, has ended; let "
			"that wait for it",
			name_of(program->path), (int)program->pid, name_of(command));
	} else if ((program = python_among(outcome))) {
		complain(
			"no trace: %s ended before it ran any Python (--version, --help, an error), or is "
			"older than 3.9",
			name_of(program->path));
	} else {
		char *names = programs_text(outcome);

		complain(
			"no trace: no Python from 3.9 on and no CUDA runtime call was seen in %s; where one "
			"of them has Python started elsewhere (sudo, ssh, docker, a service), put 'tare "
			"record' there",
			names);
		free(names);
	}
}

static void say_why(const struct outcome *outcome, const char *command,
		    const struct watch_found *found)
{
	const char *layers = getenv(KNOB_PREFIX "LAYERS");
	char *obstacle = launch_obstacle(command);

	/* Where that does not reach, what it starts may be reached. */
	if (obstacle && !outcome->version && !found->pid && !python_among(outcome))
		complain("no trace: %s", obstacle);
	else if (layers && strcmp(layers, "none") == 0)
		complain("no trace: " KNOB_PREFIX "LAYERS is none, so nothing was to be recorded");
	else if (outcome->version)
		say_nothing_recorded(outcome);
	else if (found->pid)
		say_not_preloaded(outcome, found);
	else if (outcome->loaded)
		say_unreached(outcome, command);
	else
		complain(
			"no trace: the dynamic linker did not load libtare.so into %s; see what it said "
			"above, and whether that file can be read there",
			command);
	free(obstacle);
}

void outcome_say(FILE *journal, const char *command, const struct watch *watch)
{
	struct outcome outcome = { 0 };

	read_journal(&outcome, journal);
	if (outcome.traces > LISTED_MAX)
		complain("and %u traces more, %u in all", outcome.traces - LISTED_MAX,
			 outcome.traces);
	if (outcome.failures)
		say_failures(&outcome);
	if (!outcome.traces && !outcome.failures)
		say_why(&outcome, command, &watch->found);
	else if (outcome.layer && !strncmp(outcome.layer, "frames: ", 8))
		complain("no Python functions in it: %s", outcome.layer + 8);
	for (unsigned i = 0; i < outcome.program_count; i++)
		free(outcome.programs[i].path);
	free(outcome.failed);
	free(outcome.version);
	free(outcome.layer);
}
