/*
 * dump.h: definitions and events of a trace as lines of text or JSON, from the descriptors alone.
 *
 * For cmd_dump.c and tests. Knows no event by name but where one names a record, so that events of
 * later versions are shown like all others.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "traces/reader.h"

struct dump_options {
	FILE *out;
	bool json;
	bool records, events; /* what to print */
	long thread;          /* events of this one alone; 0: all */
};

/* Prints the trace. Returns 0, or -1 where the output could not be written. */
int dump_trace(struct trace_reader *reader, const struct dump_options *options);
