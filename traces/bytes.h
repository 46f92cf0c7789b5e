/*
 * bytes.h: little-endian numbers and varints in byte buffers.
 *
 * For both sides of the format. tare runs on little-endian machines only, so these are plain copies.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the trace format is little-endian");

static inline void put_u16(uint8_t *out, uint16_t value)
{
	memcpy(out, &value, sizeof(value));
}

static inline void put_u32(uint8_t *out, uint32_t value)
{
	memcpy(out, &value, sizeof(value));
}

static inline uint16_t get_u16(const uint8_t *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof(value));
	return value;
}

static inline uint32_t get_u32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return value;
}

/* A varint: 7 bits a byte, lowest first, the top bit set on all but the last. */
#define VARINT_BYTES_MAX 10

static inline __attribute__((always_inline)) uint8_t *put_varint(uint8_t *out, uint64_t value)
{
	while (__builtin_expect(value >= 0x80, 0)) {
		*out++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*out++ = (uint8_t)value;
	return out;
}

/*
 * The same for numbers of which one never knows whether they take one byte or two: no branch to guess.
 * May write one byte more than it takes.
 */
static inline __attribute__((always_inline)) uint8_t *put_varint_short(uint8_t *out, uint64_t value)
{
	unsigned two = value >= 0x80;

	if (__builtin_expect(value >= 0x4000, 0))
		return put_varint(out, value);
	put_u16(out, (uint16_t)((value & 0x7f) | two << 7 | (value >> 7) << 8));
	return out + 1 + two;
}

/*
 * Reads a varint in [in, end) to *value. Returns the byte behind it, or NULL where it is cut off or
 * longer than 64 bits.
 */
static inline const uint8_t *get_varint(const uint8_t *in, const uint8_t *end, uint64_t *value)
{
	uint64_t result = 0;

	for (unsigned shift = 0; in < end && shift < 64; shift += 7) {
		uint8_t byte = *in++;

		if (shift == 63 && byte > 1)
			return NULL;
		result |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = result;
			return in;
		}
	}
	return NULL;
}
