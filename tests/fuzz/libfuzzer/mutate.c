/*
 * mutate.c: how libFuzzer changes a trace: mostly a few bytes somewhere behind its header, or its last
 * byte, by which fuzz_commands.c chooses; else most changes would be to zeros and to the descriptor text.
 *
 * Linked into all targets by `make fuzz`. What is no trace is changed as ever.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "traces/layout.h"

#define FIRST_FRAME (2 * TRACE_PAGE)
#define PIECE       32u /* bytes */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	const char magic[] = TRACE_MAGIC;

	if (size <= FIRST_FRAME || size > max_size || seed % 4 == 0 ||
	    memcmp(data, magic, sizeof(magic) - 1))
		return LLVMFuzzerMutate(data, size, max_size);
	seed /= 4;
	if (seed % 8 == 0) {
		data[size - 1] = (uint8_t)(seed / 8);
		return size;
	}
	seed /= 8;

	size_t at = FIRST_FRAME + seed % (size - FIRST_FRAME);
	size_t piece = size - at < PIECE ? size - at : PIECE;
	size_t more = max_size - size < PIECE ? max_size - size : PIECE;
	uint8_t changed[2 * PIECE];

	memcpy(changed, data + at, piece);
	/* Where bytes come in, all behind them moves: not often. */
	size_t now = LLVMFuzzerMutate(changed, piece, seed % 3 ? piece : piece + more);
	memmove(data + at + now, data + at + piece, size - at - piece);
	memcpy(data + at, changed, now);
	return size - piece + now;
}
