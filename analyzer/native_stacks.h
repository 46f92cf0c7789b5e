/*
 * native_stacks.h: the native stacks of a trace, as functions and lines.
 *
 * For cmd_*.c and syncs.c, once the trace was read.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "analyzer/definitions.h"

/*
 * `stack`: id of a STACK record. An array of {function, module, offset, file, line}, innermost first, tare's own
 * frames left out; null where it is not defined.
 */
json_t *native_stack_json(struct definitions *definitions, uint32_t stack);

/* Prints the innermost frames up to Python, one a line. */
void native_stack_print(struct definitions *definitions, uint32_t stack, FILE *out);
