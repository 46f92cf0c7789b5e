/*
 * crc32c.h: the checksum of frames and of the header (CRC-32C, Castagnoli, as in RFC 3720).
 *
 * For both sides. Must not allocate or lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Checksum of `bytes` at `data`, continuing from `crc` (0 to begin). */
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);
