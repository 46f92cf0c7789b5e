/*
 * machine.h: what depends on the processor: the tick counter, the CRC32C instruction, relocations.
 *
 * For traces/, preload/ and torchhooks/. A port to another processor adds its half here and nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

/* R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT of <elf.h>: a table entry that holds a function's address. */
#define MACHINE_RELOCATION_JUMP_SLOT 7u
#define MACHINE_RELOCATION_GLOB_DAT  6u

/* Ticks of a counter that runs at a constant rate on all cores, where machine_ticks_invariant(). */
static inline uint64_t machine_ticks(void)
{
	return __rdtsc();
}

/*
 * CPUID 8000_0007H:EDX[8], "invariant TSC": AMD64 Architecture Programmer's Manual volume 3, E.4.9;
 * Intel SDM volume 3, "Invariant TSC".
 */
static inline bool machine_ticks_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8));
}

/* The processor's model. Each CPUID may leave a virtual machine: not a hot path. */
static inline void machine_name(char out[64])
{
	unsigned words[13] = { 0 };

	for (unsigned i = 0; i < 3; i++)
		if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
				 &words[4 * i + 2], &words[4 * i + 3]))
			words[0] = 0;
	__builtin_memcpy(out, words, sizeof(words));
}

static inline bool machine_has_crc32c(void)
{
	unsigned a, b, c, d;

	/* Not __builtin_cpu_supports: that runs CPUID a dozen times in every process, traced or not. */
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}

__attribute__((target("sse4.2"))) static inline uint32_t
machine_crc32c(uint32_t crc, const uint8_t *p, uint64_t bytes)
{
	uint64_t wide = crc, word;

	for (; bytes >= 8; p += 8, bytes -= 8) {
		__builtin_memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; bytes; p++, bytes--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#else
#define MACHINE_RELOCATION_JUMP_SLOT UINT32_MAX
#define MACHINE_RELOCATION_GLOB_DAT  UINT32_MAX

static inline uint64_t machine_ticks(void)
{
	return 0;
}

static inline bool machine_ticks_invariant(void)
{
	return false;
}

static inline void machine_name(char out[64])
{
	out[0] = '\0';
}

static inline bool machine_has_crc32c(void)
{
	return false;
}

static inline uint32_t machine_crc32c(uint32_t crc, const uint8_t *p, uint64_t bytes)
{
	(void)p;
	(void)bytes;
	return crc;
}
#endif

static inline uint64_t machine_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
