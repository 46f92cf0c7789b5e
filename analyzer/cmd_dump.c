/* cmd_dump.c: `tare dump`: every record and event of traces, one line each. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/coverage.h"
#include "analyzer/display.h"
#include "analyzer/dump.h"
#include "analyzer/memory.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/run.h"

int cmd_dump(int argc, char **argv);

enum { OPTION_FORMAT = 0x100, OPTION_THREAD, OPTION_RECORDS, OPTION_EVENTS };

static const struct argp_option dump_argp_options[] = {
	{ "format", OPTION_FORMAT, "text|json", 0,
	  "Lines of text, or one JSON object a line (text)", 0 },
	{ "thread", OPTION_THREAD, "N", 0, "Events of this thread alone", 0 },
	{ "records", OPTION_RECORDS, NULL, 0, "Records alone: definitions and facts", 0 },
	{ "events", OPTION_EVENTS, NULL, 0, "Events alone", 0 },
	{ 0 },
};

struct arguments {
	struct dump_options dump;
	char **files;
	unsigned file_count;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;
	struct dump_options *dump = &arguments->dump;

	switch (key) {
	case OPTION_FORMAT:
		dump->json = !strcmp(argument, "json");
		if (dump->json || !strcmp(argument, "text"))
			return 0;
		return options_wrong(state, "--format is text or json, not '%s'", argument);
	case OPTION_THREAD:
		if (options_number(argument, 1, &dump->thread))
			return 0;
		return options_wrong(state, "--thread wants a number from 1 on, not '%s'",
				     argument);
	case OPTION_RECORDS: dump->records = true; return 0;
	case OPTION_EVENTS: dump->events = true; return 0;
	case ARGP_KEY_ARG:
		arguments->files =
			memory_resize(arguments->files, arguments->file_count + 1, sizeof(char *));
		arguments->files[arguments->file_count++] = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Of several files: whose lines follow. */
static void print_title(const char *path, bool json)
{
	if (json) {
		size_t length = text_to_utf8(NULL, path, strlen(path));
		char *utf8 = memory_zero(length + 1, 1);
		json_t *title = json_object();

		text_to_utf8(utf8, path, strlen(path));
		json_object_set_new(title, "file", json_stringn(utf8, length));
		json_dumpf(title, stdout, 0);
		putchar('\n');
		json_decref(title);
		free(utf8);
	} else {
		char *safe = text_escape(path);

		printf("== %s\n", safe);
		free(safe);
	}
}

/* The last line, where the trace is not whole. */
static void print_coverage(const struct trace_reader *reader, const char *path, bool json)
{
	json_t *lines = coverage_lines(reader, trace_get_header(reader)->lost_events);

	if (json && json_array_size(lines)) {
		json_t *line = json_pack("{s:O}", "coverage", lines);

		json_dumpf(line, stdout, 0);
		putchar('\n');
		json_decref(line);
	} else if (!json) {
		coverage_print(lines);
	}
	coverage_warn(lines, path);
	json_decref(lines);
}

static int is_thread(void *context, unsigned type, const union trace_record *record,
		     const uint8_t *bytes, size_t length)
{
	(void)bytes;
	(void)length;
	return type == TRACE_RECORD_THREAD && record &&
	       record->THREAD.thread == *(const long *)context;
}

/* *shown_p: there is such a thread in it, or none was asked for. */
static int dump_file(const char *path, const struct dump_options *options, bool title,
		     bool *shown_p)
{
	char message[512];
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	long thread = options->thread;

	if (!reader)
		return complain("%s", message);
	if (thread && !trace_each_record(reader, is_thread, &thread)) {
		trace_close(reader);
		return STATUS_FINE;
	}
	*shown_p = true;
	if (title)
		print_title(path, options->json);
	int failed = dump_trace(reader, options);
	print_coverage(reader, path, options->json);
	trace_close(reader);
	return failed ? complain("the output could not be written: %s", strerror(errno)) :
			STATUS_FINE;
}

int cmd_dump(int argc, char **argv)
{
	static const struct argp argp = {
		.options = dump_argp_options,
		.parser = parse,
		.args_doc = "FILE...",
		.doc = "Every record and event of traces, one line each, in the order of time. Times are ns since "
		       "the trace was opened.",
	};
	struct arguments arguments = { .dump.out = stdout };
	struct run run = { 0 };
	bool shown = false;
	int status;

	if (options_parse(&argp, 0, argc, argv, &arguments, &status) != 0)
		return status;
	if (!arguments.dump.records && !arguments.dump.events)
		arguments.dump.records = arguments.dump.events = true;
	status = run_find(&run, arguments.files, arguments.file_count, argv[0]);
	for (uint32_t i = 0; i < run.path_count; i++)
		status |= dump_file(run.paths[i], &arguments.dump, run.path_count > 1, &shown);
	if (status == STATUS_FINE && !shown)
		status = complain("no thread %ld in that trace; 'tare info' lists them",
				  arguments.dump.thread);
	run_free(&run);
	free(arguments.files);
	return status;
}
