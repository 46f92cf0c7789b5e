/*
 * crc32c.c: CRC-32C by the processor's instruction, or by a table built at its first use.
 */
#include "traces/crc32c.h"

#include "traces/machine.h"

enum { UNKNOWN, BY_INSTRUCTION, BY_TABLE };

static uint32_t table[256];
static uint32_t way;

/* Threads that come here together write the same. */
static uint32_t choose_way(void)
{
	uint32_t chosen = machine_has_crc32c() ? BY_INSTRUCTION : BY_TABLE;

	for (uint32_t i = 0; i < 256 && chosen == BY_TABLE; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		__atomic_store_n(&table[i], crc, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&way, chosen, __ATOMIC_RELEASE);
	return chosen;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint32_t chosen = __atomic_load_n(&way, __ATOMIC_ACQUIRE);

	if (chosen == UNKNOWN)
		chosen = choose_way();
	crc = ~crc;
	if (chosen == BY_INSTRUCTION)
		return ~machine_crc32c(crc, p, bytes);
	while (bytes--)
		crc = crc >> 8 ^ table[(uint8_t)crc ^ *p++];
	return ~crc;
}
