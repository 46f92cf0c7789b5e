/*
 * coverage.h: what part of its process a trace is of, in words.
 *
 * For cmd_*.c and run.c: whoever shows figures of a trace says these, so that nobody takes the part for
 * the whole.
 */
#pragma once

#include <jansson.h>

#include "traces/reader.h"

/*
 * Once all events were read: what can be said of "the trace", as an array of strings; empty where nothing
 * is missing. "covers the first 1.2 s of 5.0 s: TARE_MAX_BYTES was reached".
 */
json_t *coverage_lines(const struct trace_reader *reader, uint64_t lost);

/* On stdout, each in a line of its own. */
void coverage_print(const json_t *lines);

/* On stderr, all in one line: what is missing, but not that it begins late. */
void coverage_warn(const json_t *lines, const char *path);
