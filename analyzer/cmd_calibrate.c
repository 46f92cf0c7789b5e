/* cmd_calibrate.c: `tare calibrate`: measures what tare itself costs with an interpreter, and keeps it. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/calibrate.h"
#include "analyzer/calibration.h"
#include "analyzer/launch.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/table.h"

int cmd_calibrate(int argc, char **argv);

enum { OPTION_FORMAT = 0x100 };

static const struct argp_option calibrate_options[] = {
	{ "output", 'o', "FILE", 0, "Write it there, for TARE_CALIBRATION, instead of keeping it",
	  0 },
	{ "format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 0 },
	{ 0 },
};

struct arguments {
	const char *output, *python;
	bool json;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'o': arguments->output = argument; return 0;
	case OPTION_FORMAT:
		arguments->json = !strcmp(argument, "json");
		if (!arguments->json && strcmp(argument, "text") != 0)
			return options_wrong(state, "--format is text or json, not '%s'", argument);
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->python)
			return options_wrong(state, "one interpreter at a time, not '%s' too",
					     argument);
		arguments->python = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct column columns[] = {
	{ "kind", "", COLUMN_TEXT, 0, false },
	{ "distance", "distance", COLUMN_ID, 0, false },
	{ "interval_ns", "again after", COLUMN_TIME, 0, false },
	{ "inside_ns", "inside", COLUMN_TIME, 0, false },
	{ "outside_ns", "outside", COLUMN_TIME, 0, false },
	{ "error_ns", "error", COLUMN_TIME, 0, false },
};

static struct table *table_of(const struct calibrate_result *result)
{
	struct table *table = table_new(columns, sizeof(columns) / sizeof(*columns));

	for (unsigned i = 0; i < result->count; i++) {
		const struct calibrate_weight *weight = &result->weights[i];

		table_add_row(table);
		table_set_text(table, 0, weight->kind);
		if (weight->distance)
			table_set_number(table, 1, weight->distance);
		else
			table_set_blank(table, 1);
		table_set_number(table, 2, weight->interval_ns);
		table_set_number(table, 3, weight->inside_ns);
		table_set_number(table, 4, weight->outside_ns);
		table_set_number(table, 5, weight->error_ns);
	}
	return table;
}

static void print(const struct calibrate_result *result, const struct arguments *arguments,
		  const char *exe, const char *path)
{
	struct table *table = table_of(result);

	if (arguments->json) {
		json_t *json = json_object();

		json_object_set_new(json, "python", json_string(exe));
		json_object_set_new(json, "file", json_string(path));
		json_object_set_new(json, "weights", table_json(table));
		output_json(json);
	} else {
		table_print_text(table, "tare's own, a span", stdout);
		printf("\n%s\nkept in %s\n", exe, path);
	}
	table_free(table);
}

static int calibrate(const struct arguments *arguments, const char *exe, const char *library)
{
	char path[PATH_MAX], key[CALIBRATION_KEY_MAX], *why;
	struct calibrate_result result;
	const char *place_why;
	int status = STATUS_WRONG;

	if (!calibration_place(path, key, exe, library, &place_why))
		return complain("%s: cannot keep it: %s", exe, place_why);
	if (arguments->output)
		snprintf(path, sizeof(path), "%s", arguments->output);
	if (!calibrate_measure(&result, exe, library, &why) ||
	    !calibrate_keep(&result, path, key, &why)) {
		complain("%s", why);
		free(why);
	} else {
		print(&result, arguments, exe, path);
		status = STATUS_FINE;
	}
	return status;
}

int cmd_calibrate(int argc, char **argv)
{
	static const struct argp argp = {
		.options = calibrate_options,
		.parser = parse,
		.args_doc = "[PYTHON]",
		.doc = "Measures in some seconds what tare itself costs in a program of PYTHON (python3, if not "
		       "told) on this machine, and keeps it in XDG_CACHE_HOME/tare or ~/.cache/tare. Traces that "
		       "are recorded from then on hold it, and reports take it out.",
	};
	struct arguments arguments = { 0 };
	int status;

	if (options_parse(&argp, 0, argc, argv, &arguments, &status) != 0)
		return status;
	const char *command = arguments.python ? arguments.python : "python3";
	char *exe = calibration_interpreter(command), *library = launch_find_library();
	if (!exe)
		status = complain("%s is no Python interpreter that can be found", command);
	else
		status = library ? calibrate(&arguments, exe, library) : STATUS_WRONG;
	free(exe);
	free(library);
	return status;
}
