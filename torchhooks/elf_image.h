/*
 * elf_image.h: what the dynamic section of a loaded library says, in memory.
 *
 * For got.c and operator_symbol.c.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image {
	uintptr_t base, start, end; /* addresses; start to end: all that is mapped */
	uintptr_t relro_start, relro_end;
	const ElfW(Rela) * relocations[2]; /* of the PLT, and the others */
	size_t relocation_count[2];
	const ElfW(Sym) * symbols;
	uint32_t symbol_count; /* 0 where there is no hash table that tells */
	const char *strings;
};

/* False where it has no symbols. */
bool elf_image_look(const struct dl_phdr_info *info, struct elf_image *image);
