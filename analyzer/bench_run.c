/* bench_run.c: see bench.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/bench.h"
#include "analyzer/memory.h"
#include "analyzer/message.h"

#define BLOCK_NS 300e3 /* of a pass of the traced loop, by what the statement takes untraced */
#define BLOCKS   20

const struct bench_row bench_rows[] = {
#define NONE false
#define CALL true
#define ROW(name, group, calls, published, setup, statement)                                       \
	{ name, BENCH_##group, calls, 1e3 * (published), setup, statement },
#include "analyzer/bench.def"
#undef ROW
#undef CALL
#undef NONE
};

#define ROWS (sizeof(bench_rows) / sizeof(*bench_rows))
const unsigned bench_row_count = ROWS;

/* ------------------------------------------------------------------------------- processes */

struct child {
	pid_t pid;
	FILE *in, *out;
};

/* All of them on one, the last that there is: neighbours of the machine burden cores differently. */
static void take_core(void)
{
	cpu_set_t allowed, one;
	int core = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	while (core > 0 && !CPU_ISSET(core, &allowed))
		core--;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void start(struct child *child, char *const *argv, const char *errors)
{
	int in[2], out[2];

	*child = (struct child){ 0 };
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		return;
	child->pid = fork();
	if (child->pid == 0) {
		/* Made anew for each, so that what is said is that process's. */
		if (!freopen(errors, "w", stderr))
			_exit(127);
		take_core();
		dup2(in[0], 0);
		dup2(out[1], 1);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		fflush(stderr);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child->in = fdopen(in[1], "w");
	child->out = fdopen(out[0], "r");
}

/* One answer; NULL where there is none. */
static json_t *ask(struct child *child, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static json_t *ask(struct child *child, const char *format, ...)
{
	json_t *answer = NULL;
	char *line = NULL;
	size_t room = 0;
	va_list arguments;

	if (format) {
		va_start(arguments, format);
		vfprintf(child->in, format, arguments);
		va_end(arguments);
		fflush(child->in);
	}
	if (getline(&line, &room, child->out) > 0)
		answer = json_loads(line, 0, NULL);
	free(line);
	return answer;
}

static void stop(struct child *child)
{
	if (child->in)
		fclose(child->in);
	if (child->out)
		fclose(child->out);
	while (child->pid > 0 && waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*child = (struct child){ 0 };
}

/* The last line that it said on stderr. Free it. */
static char *last_words(const char *errors)
{
	FILE *file = fopen(errors, "r");
	char *line = NULL, *last = NULL;
	size_t room = 0;
	ssize_t length;

	while (file && (length = getline(&line, &room, file)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (!*line)
			continue;
		free(last);
		last = strdup(line);
	}
	free(line);
	if (file)
		fclose(file);
	return last ? last : strdup("it said nothing");
}

/* ------------------------------------------------------------------------------- figures */

struct values {
	double *at;
	uint32_t count, room;
};

static void add_times(struct values *values, const json_t *answer, const char *key)
{
	json_t *times = json_object_get(answer, key);

	for (size_t i = 0; i < json_array_size(times); i++) {
		memory_grow(values->at, values->count, values->room);
		values->at[values->count++] = json_number_value(json_array_get(times, i));
	}
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double quantile(struct values *values, double rank)
{
	double place = rank * (values->count - 1.0);
	uint32_t low = (uint32_t)place;

	if (!values->count)
		return NAN;
	qsort(values->at, values->count, sizeof(*values->at), by_value);
	if (low + 1 >= values->count)
		return values->at[values->count - 1];
	return values->at[low] + (place - low) * (values->at[low + 1] - values->at[low]);
}

/* Adds what the answer has. False where the process answers no more. */
static bool take(struct bench_timing *timing, struct values *values, struct values *blocked,
		 json_t *answer)
{
	const char *error = json_string_value(json_object_get(answer, "error"));
	bool alive = answer != NULL;

	if (error && !timing->unknown)
		timing->unknown = timing->error = strdup(error);
	add_times(values, answer, "times");
	add_times(blocked, answer, "blocked");
	json_decref(answer);
	return alive;
}

/* False where a process answers no more. */
static bool measure_row(struct bench_timing *timing, unsigned row, struct child *bare,
			struct child *traced, long rounds)
{
	struct values means = { 0 }, times = { 0 }, raw = { 0 }, blocked = { 0 };
	bool alive = take(timing, &means, &blocked, ask(bare, "mean %u\n", row));

	for (long turn = 0; turn < 4 * rounds && alive && !timing->unknown; turn++) {
		if (turn % 4 == 0 || turn % 4 == 3)
			alive = take(timing, &times, &blocked, ask(bare, "timer %u\n", row));
		else if (bench_rows[row].calls)
			alive = take(timing, &raw, &blocked,
				     ask(traced, "loop %u %ld %d\n", row, timing->count, BLOCKS));
		if (!timing->count)
			timing->count = lround(fmax(BLOCK_NS / quantile(&times, 0.5), 1));
	}
	if (alive && !timing->unknown)
		alive = take(timing, &means, &blocked, ask(bare, "mean %u\n", row));
	timing->blocked = quantile(&blocked, 0.5);
	timing->blocked_iqr = quantile(&blocked, 0.75) - quantile(&blocked, 0.25);
	timing->mean = quantile(&means, 0.5);
	timing->median = quantile(&times, 0.5);
	timing->p25 = quantile(&times, 0.25);
	timing->p75 = quantile(&times, 0.75);
	timing->raw = quantile(&raw, 0.5);
	free(means.at);
	free(times.at);
	free(raw.at);
	free(blocked.at);
	return alive;
}

/* ------------------------------------------------------------------------------- set-up */

static bool write_files(const char *folder, char *program, char *rows)
{
	static const char *const groups[] = { "torch", "torch", "python" };
	json_t *json = json_array();
	FILE *file;

	snprintf(program, PATH_MAX, "%s/bench.py", folder);
	snprintf(rows, PATH_MAX, "%s/rows.json", folder);
	for (unsigned i = 0; i < ROWS; i++)
		json_array_append_new(json, json_pack("{ssssssss}", "name", bench_rows[i].name,
						      "group", groups[bench_rows[i].group], "setup",
						      bench_rows[i].setup, "statement",
						      bench_rows[i].statement));
	bool fine = json_dump_file(json, rows, 0) == 0;
	json_decref(json);
	file = fopen(program, "w");
	fine = fine && file && fputs(bench_program, file) >= 0;
	if (file && fclose(file) != 0)
		fine = false;
	if (!fine)
		complain("cannot write to %s: %s", folder, strerror(errno));
	return fine;
}

/* In a source tree, where the simulated device is built beside this command: what runs a program on it. */
static bool find_simulator(const char *self, char *run, char *build)
{
	static const char *const roots[] = { "../tests/sim/run", "../../tests/sim/run" };
	char copy[PATH_MAX], sim[PATH_MAX + 16];

	snprintf(copy, sizeof(copy), "%s", self);
	snprintf(build, PATH_MAX, "%s", dirname(copy));
	snprintf(sim, sizeof(sim), "%s/sim/lib", build);
	if (access(sim, R_OK) != 0)
		return false;
	for (unsigned i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		if (snprintf(run, PATH_MAX, "%s/%s", build, roots[i]) < PATH_MAX &&
		    access(run, X_OK) == 0)
			return true;
	}
	return false;
}

static enum bench_device find_device(const char *self, char *run, char *build)
{
	if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 ||
	    access("/dev/dxg", F_OK) == 0)
		return BENCH_DEVICE_GPU;
	return find_simulator(self, run, build) ? BENCH_DEVICE_SIMULATED : BENCH_DEVICE_NONE;
}

static bool any_gpu(const bool *chosen)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (chosen[i] && bench_rows[i].group == BENCH_TORCH_GPU)
			return true;
	return false;
}

static const char *why_not(const struct bench *bench, unsigned row, const bool *chosen)
{
	if (!chosen[row])
		return "not asked for";
	if (bench_rows[row].group == BENCH_PYTHON)
		return NULL;
	if (!json_is_string(json_object_get(bench->machine, "torch")))
		return "no PyTorch";
	if (bench_rows[row].group == BENCH_TORCH_GPU &&
	    !json_is_string(json_object_get(bench->machine, "device")))
		return "no GPU";
	return NULL;
}

int bench_measure(struct bench *bench, const struct bench_request *request)
{
	char self[PATH_MAX], program[PATH_MAX], rows[PATH_MAX], simulator[PATH_MAX],
		build[PATH_MAX];
	char errors[2][PATH_MAX], *words;
	struct child children[2]; /* bare, traced */
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool alive = true;
	json_t *second;

	*bench = (struct bench){ .timings = memory_zero(ROWS, sizeof(*bench->timings)) };
	for (unsigned i = 0; i < ROWS; i++)
		bench->timings[i] = (struct bench_timing){ .blocked = NAN,
							   .blocked_iqr = NAN,
							   .mean = NAN,
							   .median = NAN,
							   .p25 = NAN,
							   .p75 = NAN,
							   .raw = NAN };
	if (length <= 0)
		return complain("/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	/* A process that is gone is noticed by its answer, which does not come. */
	signal(SIGPIPE, SIG_IGN);
	if (!write_files(request->folder, program, rows))
		return STATUS_WRONG;
	if (asprintf(&bench->trace, "%s/trace/", request->folder) < 0)
		return STATUS_WRONG;
	bench->device = find_device(self, simulator, build);
	bool simulated = bench->device == BENCH_DEVICE_SIMULATED && any_gpu(request->chosen);
	for (int traced = 0; traced < 2; traced++) {
		char *argv[20];
		unsigned count = 0;

		if (simulated) {
			argv[count++] = simulator;
			argv[count++] = (char *)"--build";
			argv[count++] = build;
			argv[count++] = (char *)"--";
		}
		if (traced) {
			argv[count++] = self;
			argv[count++] = (char *)"record";
			argv[count++] = (char *)"-o";
			argv[count++] = bench->trace;
			argv[count++] = (char *)"--";
		}
		argv[count++] = (char *)request->python;
		argv[count++] = program;
		argv[count++] = rows;
		argv[count] = NULL;
		snprintf(errors[traced], PATH_MAX, "%s/%s.stderr", request->folder,
			 traced ? "traced" : "bare");
		start(&children[traced], argv, errors[traced]);
	}
	bench->machine = ask(&children[0], NULL);
	second = ask(&children[1], NULL);
	int dead = bench->machine ? second ? -1 : 1 : 0;
	for (unsigned i = 0; i < ROWS && dead < 0; i++) {
		bench->timings[i].unknown = why_not(bench, i, request->chosen);
		if (!bench->timings[i].unknown)
			alive = measure_row(&bench->timings[i], i, &children[0], &children[1],
					    request->rounds);
		if (!alive)
			dead = feof(children[0].out) ? 0 : 1;
	}
	json_decref(second);
	for (int i = 0; i < 2; i++)
		stop(&children[i]);
	if (dead < 0)
		return STATUS_FINE;
	words = last_words(errors[dead]);
	complain("%s, %s: %s", request->python, dead ? "traced" : "bare", words);
	free(words);
	return STATUS_WRONG;
}

void bench_free(struct bench *bench)
{
	for (unsigned i = 0; bench->timings && i < ROWS; i++)
		free(bench->timings[i].error);
	free(bench->timings);
	free(bench->trace);
	json_decref(bench->machine);
	*bench = (struct bench){ 0 };
}
