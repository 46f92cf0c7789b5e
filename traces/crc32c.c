/*
 * crc32c.c: CRC-32C by the processor's instruction, or by a table built at load time.
 */
#include "traces/crc32c.h"

#include "traces/machine.h"

static uint32_t table[256];
static bool by_instruction;

__attribute__((constructor)) static void crc32c_prepare(void)
{
	by_instruction = machine_has_crc32c();
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		table[i] = crc;
	}
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	crc = ~crc;
	if (by_instruction)
		return ~machine_crc32c(crc, p, bytes);
	while (bytes--)
		crc = crc >> 8 ^ table[(uint8_t)crc ^ *p++];
	return ~crc;
}
