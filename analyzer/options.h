/*
 * options.h: the command line: what all subcommands share, and how they read it with argp.
 *
 * For cmd_*.c. A wrong option is one line on stderr and STATUS_WRONG.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>

enum output_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

/* Options of the subcommands that read traces and print tables. */
struct trace_options {
	enum output_format format;
	long pid, rank; /* -1: not chosen */
	char **files;
	unsigned file_count;
};

#define TRACE_OPTIONS_NONE                                                                         \
	{                                                                                          \
		.pid = -1, .rank = -1                                                              \
	}

/*
 * --format, --pid, --rank and FILE...: a child parser. In the parent's ARGP_KEY_INIT:
 * state->child_inputs[0] = a struct trace_options.
 */
extern const struct argp trace_options_argp;

/*
 * argp_parse with --help and one-line errors. `argv[0]` names the command. `flags`: ARGP_IN_ORDER where
 * wanted. Returns 0, or -1 with the exit status in *status_p (also for --help).
 */
int options_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input,
		  int *status_p);

/* For parsers: says what is wrong with an option's value. Returns EINVAL. */
error_t options_wrong(struct argp_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A whole number from `least` on; false where `text` is none. */
bool options_number(const char *text, long least, long *value_p);
