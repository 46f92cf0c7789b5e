/*
 * lines.h: source lines from the line tables of CPython's code objects.
 *
 * Pure: reads the bytes of a LINES record, trusts none of them, allocates nothing.
 */
#pragma once

#include <stdint.h>

#include "traces/schema.h"

#define LINES_NONE (-1)

/*
 * The line of the instruction at `offset_units` (code units from the start of the bytecode) by the
 * table `lines` of bytecode version `python` (0x030b: 3.11), for a code object whose co_firstlineno is
 * `first_line`. LINES_NONE where the table has no line for it, or its layout is not known.
 */
int32_t lines_lookup(uint32_t python, uint32_t first_line, struct trace_str lines,
		     uint32_t offset_units);

/* The same, of a LINES record and the CODE record of its code object. */
static inline int32_t lines_of_site(const struct record_CODE *code,
				    const struct record_LINES *lines, uint64_t site)
{
	return site && site <= lines->bytecode.length ?
		       lines_lookup(lines->python, code->first_line, lines->lines,
				    (uint32_t)site - 1) :
		       LINES_NONE;
}
