/*
 * bytecode.h: the loops of a code object, from the jumps in its bytecode: CPython 3.9 to 3.14.
 *
 * For analyzer/. Pure: reads the bytes of a LINES record, trusts none of them. Offsets are in code units,
 * as the sites of a trace are, less 1.
 *
 * A backward jump closes a loop where its target leads back to it: not those that end a `yield from` or
 * an `await`, nor those of exception handlers, which compilers move behind the function's other code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "traces/schema.h"

#define BYTECODE_ASIDE 0x8000u /* in `at`: an exception handler, moved out of its loop */

struct code_loop {
	uint32_t first, last; /* from the first instruction of a pass to its last jump back */
	uint32_t head; /* where the jumps lead: `first`, or behind a test that is there twice */
	uint32_t asks_until; /* `for`: behind the instruction that asks the iterator, at `first`; else `first` */
	uint32_t line;  /* 0: not known */
	uint16_t outer; /* the loop around; 0: none */
	uint16_t depth; /* loops around */
};

struct code_loops {
	struct code_loop *loops; /* from 1, outer before inner */
	uint32_t count;          /* 0 and the unused element included */
	uint16_t *at;            /* by code unit: the innermost loop, or 0; BYTECODE_ASIDE */
	uint32_t units;
};

/* False, and nothing to free, where the code has no loops, or the version is not known. */
bool bytecode_loops(struct code_loops *loops, uint32_t python, uint32_t first_line,
		    struct trace_str lines, struct trace_str bytecode);
void bytecode_loops_free(struct code_loops *loops);

/*
 * From `unit` on, the next list that is made of constants alone: the unit behind the instruction that fills
 * it. 0: none, or the version is not known.
 */
uint32_t bytecode_constant_list(uint32_t python, struct trace_str bytecode, uint32_t unit);

/* The first unit from `unit` on that may run without what is there just before it, or not run after it. */
uint32_t bytecode_straight_end(uint32_t python, struct trace_str bytecode, uint32_t unit);
/* Whether the instruction at `unit` goes on with another generator: `yield from`, `await`. */
bool bytecode_delegates(uint32_t python, struct trace_str bytecode, uint32_t unit);

/* Whether all ways within that loop from the instruction at `unit` to itself run the one at `other`. */
bool bytecode_between(const struct code_loops *loops, uint32_t loop, uint32_t python,
		      struct trace_str bytecode, uint32_t unit, uint32_t other);

/* Whether each whole pass of that loop runs the instruction at `unit`. */
bool bytecode_always(const struct code_loops *loops, uint32_t loop, uint32_t python,
		     struct trace_str bytecode, uint32_t unit);
