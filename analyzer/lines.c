/*
 * lines.c: the three layouts of CPython's line tables, see lines.h.
 */
#include "analyzer/lines.h"

#include <stdbool.h>

#define NO_LINE    UINT32_MAX
#define UNIT_BYTES 2u /* of bytecode; tables before 3.11 count bytes */

/* 3.9, co_lnotab: pairs of address step (bytes) and line step (signed); the steps come first. */
static uint32_t lookup_lnotab(uint32_t line, const uint8_t *next, const uint8_t *end, uint64_t at)
{
	for (uint64_t address = 0; end - next >= 2; next += 2) {
		address += next[0];
		if (address > at)
			break;
		line += (uint32_t)(int8_t)next[1];
	}
	return line;
}

/* 3.10, co_linetable: pairs of length (bytes) and line step before it (signed, -128: no line). */
static uint32_t lookup_ranges(uint32_t line, const uint8_t *next, const uint8_t *end, uint64_t at)
{
	for (uint64_t range_end = 0; end - next >= 2; next += 2) {
		bool none = (int8_t)next[1] == -128;

		range_end += next[0];
		if (!none)
			line += (uint32_t)(int8_t)next[1];
		if (at < range_end)
			return none ? NO_LINE : line;
	}
	return NO_LINE;
}

/* A varint of the location table: 6 bits a byte, lowest first, bit 6 set on all but the last. */
static const uint8_t *location_varint(const uint8_t *next, const uint8_t *end, uint32_t *value)
{
	*value = 0;
	for (unsigned shift = 0; next < end && shift < 32; shift += 6) {
		uint8_t byte = *next++;

		*value |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return next;
}

/*
 * 3.11 and later, co_linetable: an entry is a byte 1kkkklll (kind k, length l + 1 code units) and
 * what its kind has; only entries' first bytes have the top bit set.
 */
static uint32_t lookup_locations(uint32_t line, const uint8_t *next, const uint8_t *end,
				 uint64_t at)
{
	enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMN = 13, LONG = 14, NONE = 15 };
	uint64_t range_end = 0;

	while (next < end) {
		unsigned kind = *next >> 3 & 15;

		range_end += (*next++ & 7) + 1u;
		if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2) {
			line += kind - ONE_LINE_0;
		} else if (kind == NO_COLUMN || kind == LONG) {
			uint32_t step;

			location_varint(next, end, &step);
			line = (int32_t)((uint32_t)line +
					 (step & 1 ? 0u - (step >> 1) : step >> 1));
		}
		if (at < range_end)
			return kind == NONE ? NO_LINE : line;
		while (next < end && !(*next & 0x80))
			next++;
	}
	return NO_LINE;
}

int32_t lines_lookup(uint32_t python, uint32_t first_line, struct trace_str lines,
		     uint32_t offset_units)
{
	const uint8_t *next = (const uint8_t *)lines.data, *end = next + lines.length;
	uint32_t line = first_line;

	if (python >= 0x030b)
		line = lookup_locations(line, next, end, offset_units);
	else if (python == 0x030a)
		line = lookup_ranges(line, next, end, (uint64_t)offset_units * UNIT_BYTES);
	else
		line = lookup_lnotab(line, next, end, (uint64_t)offset_units * UNIT_BYTES);
	return line > INT32_MAX ? LINES_NONE : (int32_t)line;
}
