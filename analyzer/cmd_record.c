/*
 * cmd_record.c: `tare record`: runs a program with libtare.so and says where its traces are.
 *
 * Its options are the knobs of traces/knobs.def. What became of the traces it learns from a journal,
 * to which each traced process appends a line (TARE_JOURNAL).
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/calibrate.h"
#include "analyzer/calibration.h"
#include "analyzer/display.h"
#include "analyzer/launch.h"
#include "analyzer/memory.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/outcome.h"
#include "traces/knobs.h"
#include "traces/layout.h"
#include "traces/reader.h"

#define OPTION_KNOB 0x100 /* + enum knob_id */
#define OPTION_ROOM 32

#define OPTION_NO_CALIBRATE (OPTION_KNOB + KNOB_COUNT)
#define OPTION_GPU          (OPTION_NO_CALIBRATE + 1)

struct request {
	const char *values[KNOB_COUNT]; /* NULL: not given */
	bool no_calibrate, gpu;
	char **command;
};

/* ------------------------------------------------------------------------------- options */

static int option_key(unsigned id)
{
	return id == KNOB_OUTPUT ? 'o' : OPTION_KNOB + (int)id;
}

static bool is_flag(unsigned id)
{
	return strcmp(knob_descs[id].type, "flag") == 0;
}

/* What is on unless told is an option to turn it off. */
static bool is_on(unsigned id)
{
	return is_flag(id) && strcmp(knob_descs[id].initial, "1") == 0;
}

static const char *change_text(char *out, const char *before, const char *text, int (*change)(int))
{
	size_t i = (size_t)sprintf(out, "%s", before);

	for (; *text && i < OPTION_ROOM - 1; text++)
		out[i++] = *text == '_' ? '-' : (char)change(*text);
	out[i] = '\0';
	return out;
}

/* TARE_MAX_BYTES is --max-bytes, which takes BYTES; TARE_COMMAND_LINE is --no-command-line. */
static const char *option_name(char *out, unsigned id)
{
	return change_text(out, is_on(id) ? "no-" : "", knob_descs[id].name, tolower);
}

/* Each knob is an option, but the journal, which is ours. */
static const struct argp_option *knob_options(void)
{
	static struct argp_option options[KNOB_COUNT + 3];
	static char names[KNOB_COUNT][OPTION_ROOM], types[KNOB_COUNT][OPTION_ROOM];
	unsigned count = 0;

	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		const struct knob_desc *knob = &knob_descs[id];
		char *doc = NULL; /* for as long as the command runs */

		if (id == KNOB_JOURNAL)
			continue;
		if (is_on(id) &&
		    asprintf(&doc, KNOB_PREFIX "%s=0 (%s)", knob->name, knob->meaning) < 0)
			doc = NULL;
		if (!is_flag(id) && asprintf(&doc, "%s (%s)", knob->meaning, knob->initial) < 0)
			doc = NULL;
		options[count++] = (struct argp_option){
			.name = option_name(names[id], id),
			.key = option_key(id),
			.arg = is_flag(id) ? NULL : change_text(types[id], "", knob->type, toupper),
			.doc = doc ? doc : knob->meaning,
		};
	}
	options[count++] = (struct argp_option){
		.name = "no-calibrate",
		.key = OPTION_NO_CALIBRATE,
		.doc = "do not measure what tare itself costs, where that is not known yet",
	};
	options[count++] = (struct argp_option){
		.name = "gpu",
		.key = OPTION_GPU,
		.doc = "also what devices did, by CUPTI: the layer gpu on top of the others",
	};
	return options;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct request *request = state->input;
	struct knobs knobs;
	char name[OPTION_ROOM];

	if (key == ARGP_KEY_ARG) {
		request->command = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	}
	if (key == OPTION_GPU) {
		request->gpu = true;
		return 0;
	}
	if (key == OPTION_NO_CALIBRATE) {
		request->no_calibrate = true;
		return 0;
	}
	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		if (id == KNOB_JOURNAL || key != option_key(id))
			continue;
		request->values[id] = is_on(id) ? "0" : is_flag(id) ? "1" : argument;
		if (!*request->values[id] ||
		    !knob_set(&knobs, (enum knob_id)id, request->values[id]))
			return options_wrong(state, "--%s: wrong value '%s' (%s)",
					     option_name(name, id), argument,
					     knob_descs[id].meaning);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ------------------------------------------------------------------------------- environment */

static void add_gpu(struct request *request)
{
	const char *layers = request->values[KNOB_LAYERS];
	char *all;

	if (!layers)
		layers = getenv(KNOB_PREFIX "LAYERS");
	if (!layers || !*layers)
		layers = knob_descs[KNOB_LAYERS].initial;
	/* For as long as the command runs. */
	if (asprintf(&all, "%s,gpu", layers) > 0)
		request->values[KNOB_LAYERS] = all;
}

static void set_variable(enum knob_id id, const char *value)
{
	char name[64];

	snprintf(name, sizeof(name), KNOB_PREFIX "%s", knob_descs[id].name);
	setenv(name, value, 1);
}

/*
 * Relative names are taken from here, not from where each process starts. Only the part that we add
 * is protected from being expanded.
 */
static void set_output(const char *output)
{
	char folder[PATH_MAX], *path;
	size_t used = 0;

	if (*output == '/' || !getcwd(folder, sizeof(folder))) {
		set_variable(KNOB_OUTPUT, output);
		return;
	}
	path = memory_zero(2 * strlen(folder) + strlen(output) + 2, 1);
	for (const char *c = folder; *c; c++) {
		path[used++] = *c;
		if (*c == '%')
			path[used++] = '%';
	}
	sprintf(path + used, "/%s", output);
	set_variable(KNOB_OUTPUT, path);
	free(path);
}

static bool set_environment(const struct request *request, const char *library)
{
	const char *preload = getenv("LD_PRELOAD"), *output = getenv(KNOB_PREFIX "OUTPUT");
	char *value;

	if (strpbrk(library, ": ")) {
		complain("LD_PRELOAD cannot hold a path with spaces or colons: %s", library);
		return false;
	}
	if (asprintf(&value, "%s%s%s", library, preload && *preload ? ":" : "",
		     preload ? preload : "") < 0)
		return false;
	setenv("LD_PRELOAD", value, 1);
	free(value);
	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		if (request->values[id])
			set_variable((enum knob_id)id, request->values[id]);
	}
	if (request->values[KNOB_OUTPUT])
		output = request->values[KNOB_OUTPUT];
	set_output(output && *output ? output : knob_descs[KNOB_OUTPUT].initial);
	return true;
}

/* ------------------------------------------------------------------------------- calibration */

/* At the first use of an interpreter. What does not work is said, and the program runs all the same. */
static void calibrate_first(const struct request *request, const char *library)
{
	const char *chosen = getenv(KNOB_PREFIX "CALIBRATION"), *obstacle;
	char path[PATH_MAX], key[CALIBRATION_KEY_MAX], *why;
	struct calibrate_result result;
	struct calibration kept;
	char *python;

	if (request->no_calibrate || (chosen && *chosen) ||
	    !(python = calibration_interpreter(request->command[0])))
		return;
	if (calibration_place(path, key, python, library, &obstacle)) {
		if (calibration_read(&kept, path, key)) {
			calibration_free(&kept);
		} else {
			complain("measuring once what tare itself costs with %s, some seconds "
				 "(--no-calibrate: not)",
				 python);
			if (!calibrate_measure(&result, python, library, &why) ||
			    !calibrate_keep(&result, path, key, &why)) {
				complain("that is not known: %s", why);
				free(why);
			}
		}
	}
	free(python);
}

int cmd_record(int argc, char **argv)
{
	const struct argp argp = {
		.options = knob_options(),
		.parser = parse_option,
		.args_doc = "[--] COMMAND [ARGUMENT...]",
		.doc = "Runs COMMAND with libtare.so and says on stderr where the traces are, or why "
		       "there are none. Returns COMMAND's exit status, 128 + N if signal N ended it.",
	};
	char journal_path[PATH_MAX];
	const char *temporary = getenv("TMPDIR");
	struct request request = { .command = NULL };
	struct watch watch = { .journal = -1 };
	int status, error;

	if (options_parse(&argp, ARGP_IN_ORDER, argc, argv, &request, &status) != 0)
		return status;
	if (!request.command)
		return complain("no command to run; '%s --help' says more", argv[0]);
	if (request.gpu)
		add_gpu(&request);
	char *library = launch_find_library();
	if (!library || !set_environment(&request, library)) {
		free(library);
		return STATUS_WRONG;
	}
	calibrate_first(&request, library);
	watch.library = library;

	snprintf(journal_path, sizeof(journal_path), "%s/tare-journal-XXXXXX",
		 temporary && *temporary ? temporary : "/tmp");
	int fd = mkostemp(journal_path, O_CLOEXEC);
	FILE *journal = fd < 0 ? NULL : fdopen(fd, "r");
	if (journal)
		set_variable(KNOB_JOURNAL, journal_path);
	else
		warn("%s: %s: where the traces are will not be said", journal_path,
		     strerror(errno));

	watch.journal = fd;
	status = launch_run(request.command, &watch, &error);
	if (error)
		complain("cannot run %s: %s", request.command[0], strerror(error));
	if (journal) {
		if (!error)
			outcome_say(journal, request.command[0], &watch);
		fclose(journal);
		unlink(journal_path);
	}
	free(library);
	return status;
}
