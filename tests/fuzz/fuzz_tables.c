/*
 * fuzz_tables.c: any bytes as line tables and as bytecode: every lookup ends, within the table; loops are in the
 * code. The first byte is the first line, the second where the bytecode begins, in 256ths.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/bytecode.h"
#include "analyzer/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void look_up(uint32_t version, uint32_t first_line, struct trace_str lines)
{
	for (uint32_t unit = 0; unit < 300; unit += 7)
		lines_lookup(version, first_line, lines, unit);
	lines_lookup(version, UINT32_MAX, lines, UINT32_MAX);
}

static void find_loops(uint32_t version, uint32_t first_line, struct trace_str lines,
		       struct trace_str bytecode)
{
	struct code_loops loops;
	bool any = bytecode_loops(&loops, version, first_line, lines, bytecode);

	for (uint32_t i = 1; any && i < loops.count; i++) {
		const struct code_loop *loop = &loops.loops[i];

		check(loop->first <= loop->last && loop->last < loops.units && loop->outer < i);
		for (uint32_t unit = loop->first; unit <= loop->last && unit < 64; unit += 5) {
			bytecode_always(&loops, i, version, bytecode, unit);
			bytecode_between(&loops, i, version, bytecode, loop->first, unit);
		}
	}
	if (any)
		bytecode_loops_free(&loops);
	for (uint32_t unit = 0; unit < 100; unit += 9) {
		bytecode_constant_list(version, bytecode, unit);
		bytecode_straight_end(version, bytecode, unit);
		bytecode_delegates(version, bytecode, unit);
	}
	bytecode_constant_list(version, bytecode, UINT32_MAX);
	bytecode_straight_end(version, bytecode, UINT32_MAX);
	bytecode_delegates(version, bytecode, UINT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t versions[] = { 0x0309, 0x030a, 0x030b, 0x030c, 0x030d, 0x030e };

	if (size < 2)
		return 0;
	uint32_t table = (uint32_t)((size - 2) * data[1] / 256);
	/* Of their own, so that a sanitizer sees what is read behind them. */
	char *lines = malloc(table ? table : 1);
	char *bytecode = malloc(size - table);
	struct trace_str line_table = { lines, table };
	struct trace_str code = { bytecode, (uint32_t)(size - 2) - table };

	check(lines && bytecode);
	memcpy(lines, data + 2, table);
	memcpy(bytecode, data + 2 + table, code.length);
	for (unsigned i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		look_up(versions[i], data[0], line_table);
		find_loops(versions[i], data[0], line_table, code);
	}
	free(lines);
	free(bytecode);
	return 0;
}
