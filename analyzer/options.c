/* options.c: see options.h. */
#include "analyzer/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/memory.h"
#include "analyzer/message.h"

/* argp's own help and errors end the process, or take two lines: ours do not. */
struct parse {
	void *input;
	bool helped;
};

/* One line is enough: an option's own complaint, or that there is no such option. */
static bool told;

static const struct argp_option help_options[] = {
	{ "help", 'h', NULL, 0, "Say this", -1 },
	{ 0 },
};

static error_t parse_help(int key, char *argument, struct argp_state *state)
{
	struct parse *parse = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = parse->input; return 0;
	case 'h':
		argp_help(state->root_argp, stdout,
			  ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG |
				  ARGP_HELP_POST_DOC,
			  state->name);
		parse->helped = true;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_ERROR:
		if (!told && !parse->helped && state->next > 0)
			complain(
				"'%s' is no option here, or lacks its value; '%s --help' lists them",
				state->argv[state->next - 1], state->name);
		told = true;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int options_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input,
		  int *status_p)
{
	struct parse parse = { .input = input };
	const struct argp_child children[] = { { argp, 0, NULL, 0 }, { 0 } };
	const struct argp root = {
		.options = help_options,
		.parser = parse_help,
		.children = children,
	};
	error_t error =
		argp_parse(&root, argc, argv, flags | ARGP_NO_ERRS | ARGP_NO_HELP, NULL, &parse);

	*status_p = parse.helped ? STATUS_FINE : STATUS_WRONG;
	return error || parse.helped ? -1 : 0;
}

error_t options_wrong(struct argp_state *state, const char *format, ...)
{
	va_list arguments;
	char *message;

	va_start(arguments, format);
	if (vasprintf(&message, format, arguments) >= 0) {
		complain("%s; '%s --help' says more", message, state->name);
		free(message);
	}
	va_end(arguments);
	told = true;
	return EINVAL;
}

bool options_number(const char *text, long least, long *value_p)
{
	char *end;

	errno = 0;
	*value_p = strtol(text, &end, 10);
	return end != text && !*end && !errno && *value_p >= least;
}

enum { OPTION_FORMAT = 0x100, OPTION_PID, OPTION_RANK };

static const struct argp_option trace_options[] = {
	{ "format", OPTION_FORMAT, "text|json|csv", 0, "How to print (text)", 0 },
	{ "pid", OPTION_PID, "PID", 0, "Of several processes: this one", 0 },
	{ "rank", OPTION_RANK, "N", 0, "Of several processes: the one of this rank", 0 },
	{ 0 },
};

static error_t parse_trace_option(int key, char *argument, struct argp_state *state)
{
	static const char *const formats[] = { "text", "json", "csv" };
	struct trace_options *options = state->input;

	switch (key) {
	case OPTION_FORMAT:
		for (unsigned i = 0; i < 3; i++)
			if (!strcmp(argument, formats[i])) {
				options->format = (enum output_format)i;
				return 0;
			}
		return options_wrong(state, "--format is text, json or csv, not '%s'", argument);
	case OPTION_PID:
		if (!options_number(argument, 0, &options->pid))
			return options_wrong(state, "--pid wants a number, not '%s'", argument);
		return 0;
	case OPTION_RANK:
		if (!options_number(argument, 0, &options->rank))
			return options_wrong(state, "--rank wants a number, not '%s'", argument);
		return 0;
	case ARGP_KEY_ARG:
		options->files =
			memory_resize(options->files, options->file_count + 1, sizeof(char *));
		options->files[options->file_count++] = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

const struct argp trace_options_argp = {
	.options = trace_options,
	.parser = parse_trace_option,
};
