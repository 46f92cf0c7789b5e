/*
 * headline.h: what a trace is of, and what of it is known: program, versions, coverage, losses.
 *
 * For cmd_*.c.
 */
#pragma once

#include <jansson.h>

#include "analyzer/run.h"

/* The "trace" object of the JSON. */
json_t *headline_json(const struct run *run);

/* One line, as wide as the terminal, and what is not covered. Above all figures of a trace. */
void headline_print(const struct run *run);

/* Lines that say what the figures do not hold: layers that were off, launches that cannot be seen. */
json_t *notes_json(const struct run *run);
void notes_print(const struct run *run);

/* The processes of a run of several. */
json_t *processes_json(const struct run *run);
void processes_print(const struct run *run);
