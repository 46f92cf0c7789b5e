/*
 * symbols.h: what functions and lines addresses of a file belong to, by elfutils.
 *
 * For native_stacks.c. The file is looked at when it is first asked about; nothing of it has to be there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct symbols;

/* A name as people write it, demangled where that can be done; free it. */
char *symbol_readable(const char *name);

/* Text that is not known is NULL. Lives as long as the symbols. */
struct symbol {
	const char *function; /* demangled */
	const char *file;
	uint32_t line; /* 0: not known */
};

/* Of the file `path`, unless it has another build id than that; `bytes` 0: none is known. */
struct symbols *symbols_new(const char *path, const uint8_t *build_id, uint32_t bytes);
void symbols_free(struct symbols *symbols);

/* `address`: as in the file. */
const struct symbol *symbols_find(struct symbols *symbols, uint64_t address);
