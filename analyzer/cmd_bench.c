/*
 * cmd_bench.c: `tare bench`: what common operations cost on this machine, by timers and by a trace.
 *
 * The check of tare's own figures: the same statement, timed untraced, and as its loop shows in a trace.
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/bench.h"
#include "analyzer/mainloop.h"
#include "analyzer/memory.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/run.h"
#include "analyzer/table.h"

int cmd_bench(int argc, char **argv);

#define ROUNDS 10

#define COLUMNS_(COLUMN)                                                                           \
	COLUMN(NAME, "name", "", COLUMN_TEXT, 0)                                                   \
	COLUMN(GROUP, "group", NULL, COLUMN_TEXT, 0)                                               \
	COLUMN(SETUP, "setup", NULL, COLUMN_TEXT, 0)                                               \
	COLUMN(STATEMENT, "statement", NULL, COLUMN_TEXT, 0)                                       \
	COLUMN(PUBLISHED, "published_ns", "published", COLUMN_TIME, 9)                             \
	COLUMN(MEAN, "timer_ns.mean", "timeit", COLUMN_TIME, 0)                                    \
	COLUMN(BLOCKED, "blocked_ns.median", "blocked", COLUMN_TIME, 8)                            \
	COLUMN(BLOCKED_IQR, "blocked_ns.iqr", "IQR", COLUMN_TIME, 8)                               \
	COLUMN(MEDIAN, "timer_ns.median", "timer", COLUMN_TIME, 0)                                 \
	COLUMN(P25, "timer_ns.p25", NULL, COLUMN_TIME, 0)                                          \
	COLUMN(P75, "timer_ns.p75", NULL, COLUMN_TIME, 0)                                          \
	COLUMN(IQR, "timer_ns.iqr", "IQR", COLUMN_TIME, 8)                                         \
	COLUMN(TARE, "tare_ns.median", "tare", COLUMN_TIME, 0)                                     \
	COLUMN(TARE_P10, "tare_ns.p10", NULL, COLUMN_TIME, 0)                                      \
	COLUMN(TARE_MEAN, "tare_ns.mean", NULL, COLUMN_TIME, 0)                                    \
	COLUMN(RAW, "traced_timer_ns", NULL, COLUMN_TIME, 0)                                       \
	COLUMN(OFF, "difference_ns", "off by", COLUMN_TIME, 0)                                     \
	COLUMN(TOLERANCE, "tolerance_ns", "of", COLUMN_TIME, 7)                                    \
	COLUMN(WITHIN, "within", NULL, COLUMN_FLAG, 0)                                             \
	COLUMN(VERDICT, NULL, "", COLUMN_TEXT, 0)                                                  \
	COLUMN(PYTHON, "python_ns", "python", COLUMN_TIME, 1)                                      \
	COLUMN(FRAMEWORK, "framework_ns", "framework", COLUMN_TIME, 1)                             \
	COLUMN(LIBRARY, "library_ns", "library", COLUMN_TIME, 5)                                   \
	COLUMN(LAUNCH, "launch_ns", "launch", COLUMN_TIME, 2)                                      \
	COLUMN(COPY, "copy_ns", "copy", COLUMN_TIME, 3)                                            \
	COLUMN(MEMORY, "memory_ns", "memory", COLUMN_TIME, 6)                                      \
	COLUMN(WAIT, "wait_ns", "wait", COLUMN_TIME, 4)                                            \
	COLUMN(HOST_ONLY, "host_cost_only", NULL, COLUMN_FLAG, 0)                                  \
	COLUMN(UNKNOWN, "unknown", NULL, COLUMN_TEXT, 0)

enum { COLUMNS_(COLUMN_NUMBER) COLUMNS };

static const struct column columns[] = { COLUMNS_(COLUMN_DESCRIPTION) };

/* Within one of these of the timer, or twice its interquartile range, a traced figure agrees. */
static const struct {
	double share, ns;
} tolerances[] = {
	[BENCH_TORCH] = { 0.05, 40 },
	[BENCH_TORCH_GPU] = { 0.05, 40 },
	[BENCH_PYTHON] = { 0.10, 20 },
};

enum {
	OPTION_PYTHON = 0x100,
	OPTION_ROWS,
	OPTION_ROUNDS,
	OPTION_FORMAT,
	OPTION_CHECK,
	OPTION_KEEP
};

static const struct argp_option bench_options[] = {
	{ "python", OPTION_PYTHON, "PYTHON", 0, "The interpreter (python3)", 0 },
	{ "rows", OPTION_ROWS, "NAME,...", 0, "These alone; cpu. stands for all that begin so", 0 },
	{ "rounds", OPTION_ROUNDS, "N", 0, "Timer, trace, trace, timer, so many times (10)", 0 },
	{ "format", OPTION_FORMAT, "text|json|csv", 0, "What is printed (text)", 0 },
	{ "check", OPTION_CHECK, NULL, 0,
	  "Fails (status 1) where a figure of tare's does not agree", 0 },
	{ "keep", OPTION_KEEP, "FOLDER", 0, "Leaves the trace there", 0 },
	{ 0 },
};

struct arguments {
	struct bench_request request;
	enum output_format format;
	bool check;
	const char *keep;
};

/* A name, or the beginning of several, which ends with a point. */
static bool choose(const char *item, bool *chosen)
{
	bool any = false, several = item[strlen(item) - 1] == '.';

	for (unsigned i = 0; i < bench_row_count; i++)
		if (several ? !strncmp(bench_rows[i].name, item, strlen(item)) :
			      !strcmp(bench_rows[i].name, item))
			chosen[i] = any = true;
	return any;
}

static error_t choose_all(struct argp_state *state, char *list, bool *chosen)
{
	char *rest = NULL;

	memset(chosen, 0, bench_row_count);
	for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
		if (!choose(item, chosen))
			return options_wrong(state, "--rows: there is no row '%s'", item);
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	static const char *const formats[] = { "text", "json", "csv" };
	struct arguments *arguments = state->input;

	switch (key) {
	case OPTION_PYTHON: arguments->request.python = argument; return 0;
	case OPTION_ROWS: return choose_all(state, argument, (bool *)arguments->request.chosen);
	case OPTION_ROUNDS:
		if (!options_number(argument, 1, &arguments->request.rounds))
			return options_wrong(state, "--rounds wants a number, not '%s'", argument);
		return 0;
	case OPTION_FORMAT:
		for (unsigned i = 0; i < 3; i++)
			if (!strcmp(argument, formats[i])) {
				arguments->format = (enum output_format)i;
				return 0;
			}
		return options_wrong(state, "--format is text, json or csv, not '%s'", argument);
	case OPTION_CHECK: arguments->check = true; return 0;
	case OPTION_KEEP: arguments->keep = argument; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* ---------------------------------------------------------------- what the trace says */

/* The loop over blocks of a row; LOOP_NONE where its passes are not known. */
static uint32_t find_loop(const struct model *model, const struct bench_row *row)
{
	static const char folder[] = "tare-bench/";

	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++) {
		const struct loop_node *node = &model->loops.nodes[i];
		const struct def_code *code = &model->definitions.codes[node->code];

		if (!strncmp(code->file, folder, strlen(folder)) &&
		    !strcmp(code->file + strlen(folder), row->name) &&
		    !code->loops->loops[node->loop].outer && node->passes_known)
			return i;
	}
	return LOOP_NONE;
}

static void set_split(struct table *table, const json_t *ledger, double count)
{
	static const struct {
		unsigned column;
		const char *lines[2];
	} parts[] = {
		{ COLUMN_PYTHON, { "python_user_ns", "python_library_ns" } },
		{ COLUMN_FRAMEWORK, { "framework_ns" } },
		{ COLUMN_LIBRARY, { "library_ns" } },
		{ COLUMN_LAUNCH, { "launch_ns" } },
		{ COLUMN_COPY, { "copy_ns" } },
		{ COLUMN_MEMORY, { "memory_ns" } },
		{ COLUMN_WAIT, { "wait_ns" } },
	};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		double sum = 0;

		for (unsigned j = 0; j < 2 && parts[i].lines[j]; j++) {
			const json_t *line = json_object_get(ledger, parts[i].lines[j]);

			sum += json_is_number(line) ? json_number_value(line) : NAN;
		}
		/* Below a thousandth of a ns is nothing. */
		if (sum > 0)
			table_set_number(table, parts[i].column, sum / count);
		else if (sum == 0)
			table_set_blank(table, parts[i].column);
	}
}

static double number_of(const json_t *json, const char *name)
{
	const json_t *number = json_object_get(json, name);

	return json_is_number(number) ? json_number_value(number) : NAN;
}

/* Whether the trace's figure agrees; true also where there is nothing to compare. */
static bool set_traced(struct table *table, struct model *model, const struct bench_row *row,
		       const struct bench_timing *timing)
{
	uint32_t number = model ? find_loop(model, row) : LOOP_NONE;
	double count = (double)timing->count, iqr = timing->p75 - timing->p25, tolerance, tare;

	if (!number) {
		table_set_text(table, COLUMN_UNKNOWN, "its loop is not in the trace");
		table_set_text(table, COLUMN_VERDICT, "not in the trace");
		return false;
	}
	json_t *loop = main_loop_json(model, number), *pass = json_object_get(loop, "pass_ns");
	tare = number_of(pass, "median") / count;
	table_set_number(table, COLUMN_TARE, tare);
	table_set_number(table, COLUMN_TARE_P10, number_of(pass, "p10") / count);
	table_set_number(table, COLUMN_TARE_MEAN, number_of(pass, "mean") / count);
	table_set_number(table, COLUMN_RAW, timing->raw);
	if (row->group != BENCH_PYTHON)
		set_split(table, json_object_get(loop, "ledger"), count);
	json_decref(loop);
	tolerance =
		fmax(fmax(tolerances[row->group].share * timing->median, tolerances[row->group].ns),
		     2 * iqr);
	bool within = fabs(tare - timing->median) <= tolerance;
	table_set_number(table, COLUMN_OFF, tare - timing->median);
	table_set_number(table, COLUMN_TOLERANCE, tolerance);
	table_set_number(table, COLUMN_WITHIN, within);
	table_set_text(table, COLUMN_VERDICT, within ? "agrees" : "OFF");
	return within;
}

static bool add_row(struct table *table, const struct bench *bench, struct model *model, unsigned i)
{
	static const char *const groups[] = { "pytorch", "pytorch", "python" };
	const struct bench_row *row = &bench_rows[i];
	const struct bench_timing *timing = &bench->timings[i];
	char *text;

	table_add_row(table);
	table_set_text(table, COLUMN_NAME, row->name);
	table_set_text(table, COLUMN_GROUP, groups[row->group]);
	table_set_text(table, COLUMN_SETUP, row->setup);
	table_set_text(table, COLUMN_STATEMENT, row->statement);
	table_set_number(table, COLUMN_PUBLISHED, row->published_ns);
	if (row->group == BENCH_TORCH_GPU)
		table_set_number(table, COLUMN_HOST_ONLY, bench->device == BENCH_DEVICE_SIMULATED);
	if (timing->unknown) {
		table_set_text(table, COLUMN_UNKNOWN, timing->unknown);
		if (asprintf(&text, "unknown: %s", timing->unknown) >= 0) {
			table_set_text(table, COLUMN_VERDICT, text);
			free(text);
		}
		return true;
	}
	table_set_number(table, COLUMN_MEAN, timing->mean);
	table_set_number(table, COLUMN_BLOCKED, timing->blocked);
	table_set_number(table, COLUMN_BLOCKED_IQR, timing->blocked_iqr);
	table_set_number(table, COLUMN_MEDIAN, timing->median);
	table_set_number(table, COLUMN_P25, timing->p25);
	table_set_number(table, COLUMN_P75, timing->p75);
	table_set_number(table, COLUMN_IQR, timing->p75 - timing->p25);
	if (row->calls)
		return set_traced(table, model, row, timing);
	table_set_text(table, COLUMN_VERDICT, "the timer's alone");
	return true;
}

/* The rows of a group, or all: false where one does not agree. */
static bool fill(struct table *table, const struct bench *bench, struct model *model,
		 const bool *chosen, unsigned groups)
{
	bool fine = true;

	for (unsigned i = 0; i < bench_row_count; i++)
		if (chosen[i] && groups >> bench_rows[i].group & 1)
			fine &= add_row(table, bench, model, i);
	return fine;
}

/* ---------------------------------------------------------------- output */

static const char *said(const struct bench *bench, const char *key)
{
	return json_string_value(json_object_get(bench->machine, key));
}

static void print_group(const struct bench *bench, struct model *model, const bool *chosen,
			unsigned groups, const char *heading)
{
	struct table *table = table_new(columns, COLUMNS);

	fill(table, bench, model, chosen, groups);
	if (table_rows(table)) {
		printf("\n%s%s%s\n", output_style(STYLE_HEADING), heading,
		       output_style(STYLE_PLAIN));
		table_print_text(table, "", stdout);
	}
	table_free(table);
}

static void print_text(const struct bench *bench, struct model *model, const bool *chosen)
{
	bool simulated = bench->device == BENCH_DEVICE_SIMULATED && said(bench, "device");
	char notes[] =
		"published: another machine, see docs/bench.md. timeit: the mean, as published. blocked: median of "
		"blocked_autorange. timer, and the IQR behind it: median of short blocks, in turn with those in the "
		"trace. tare: the same statement in a trace, tare's own weight taken out. of: what it may be off by. "
		"Rows without a call are the timer's alone: tare sees calls.";

	printf("Python %s, PyTorch %s, device: %s\n", said(bench, "python"),
	       said(bench, "torch") ? said(bench, "torch") : "none",
	       simulated             ? "simulated" :
	       said(bench, "device") ? said(bench, "device") :
				       "none");
	print_group(bench, model, chosen, 1u << BENCH_TORCH,
		    "PyTorch, CPU, tensors of one element");
	print_group(bench, model, chosen, 1u << BENCH_TORCH_GPU,
		    simulated ? "PyTorch, simulated device: host cost only" :
				"PyTorch, GPU, tensors of one element");
	print_group(bench, model, chosen, 1u << BENCH_PYTHON, "Python");
	putchar('\n');
	output_wrapped(notes, 0, 0);
	putchar('\n');
}

static void print_json(const struct bench *bench, const struct table *table, bool passed)
{
	bool simulated = bench->device == BENCH_DEVICE_SIMULATED;
	json_t *json = json_object();

	json_object_set(json, "machine", bench->machine);
	json_object_set_new(json_object_get(json, "machine"), "simulated",
			    json_boolean(simulated && said(bench, "device")));
	json_object_set_new(json, "rows", table_json(table));
	json_object_set_new(json, "passed", json_boolean(passed));
	output_json(json);
}

static int show(const struct arguments *arguments, const struct bench *bench)
{
	struct trace_options options = { .pid = -1, .rank = -1 };
	struct table *table = table_new(columns, COLUMNS);
	struct run run = { 0 };
	char *files[] = { bench->trace };
	bool passed;
	int status;

	options.files = files;
	options.file_count = 1;
	status = run_load(&run, &options, "tare bench");
	if (status != STATUS_FINE)
		return status;
	struct model *model = &run.chosen->model;
	passed = fill(table, bench, model, arguments->request.chosen, ~0u);
	switch (arguments->format) {
	case FORMAT_TEXT: print_text(bench, model, arguments->request.chosen); break;
	case FORMAT_JSON: print_json(bench, table, passed); break;
	case FORMAT_CSV: table_print_csv(table, stdout); break;
	}
	table_free(table);
	run_free(&run);
	return arguments->check && !passed ? STATUS_GATE : STATUS_FINE;
}

/* ---------------------------------------------------------------- folders */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status, (void)type, (void)place;
	return remove(path);
}

/* Free it; NULL after saying why. */
static char *make_folder(const char *keep)
{
	const char *temporary = getenv("TMPDIR");
	char *folder, *trace;
	bool made;

	if (keep)
		folder = strdup(keep);
	else if (asprintf(&folder, "%s/tare-bench-XXXXXX",
			  temporary && *temporary ? temporary : "/tmp") < 0)
		folder = NULL;
	made = folder &&
	       (keep ? mkdir(folder, 0777) == 0 || errno == EEXIST : mkdtemp(folder) != NULL);
	if (made && asprintf(&trace, "%s/trace", folder) >= 0) {
		/* Another run's trace in it would be read as part of this one. */
		made = mkdir(trace, 0777) == 0;
		free(trace);
	}
	if (made)
		return folder;
	complain("%s: %s", folder ? folder : "no folder", strerror(errno));
	free(folder);
	return NULL;
}

int cmd_bench(int argc, char **argv)
{
	static const struct argp argp = {
		.options = bench_options,
		.parser = parse,
		.doc = "What common operations of Python and PyTorch cost on this machine: by timeit and "
		       "torch.utils.benchmark, untraced, beside published figures, and as a trace shows "
		       "them. Takes a minute.",
	};
	bool *chosen = memory_zero(bench_row_count, sizeof(*chosen));
	struct arguments arguments = {
		.request = { .python = "python3", .rounds = ROUNDS, .chosen = chosen },
	};
	struct bench bench = { 0 };
	int status;

	memset(chosen, true, bench_row_count);
	if (options_parse(&argp, 0, argc, argv, &arguments, &status) != 0) {
		free(chosen);
		return status;
	}
	char *folder = make_folder(arguments.keep);
	if (!folder) {
		free(chosen);
		return STATUS_WRONG;
	}
	arguments.request.folder = folder;
	status = bench_measure(&bench, &arguments.request);
	if (status == STATUS_FINE)
		status = show(&arguments, &bench);
	bench_free(&bench);
	if (!arguments.keep)
		nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(folder);
	free(chosen);
	return status;
}
