/* symbols.c: see symbols.h. */
#include "analyzer/symbols.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/hash.h"
#include "analyzer/memory.h"

/* One is kept of each address: to find it anew means to look through all symbols of the file. */
struct found {
	uint64_t address;
	struct symbol symbol;
};

struct symbols {
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: nothing is known */
	struct arena arena;
	struct found **found; /* from 1 */
	uint32_t count, room;
	struct hash_table index;
};

/* Of the C++ library, which need not be there: then names stay as they are in the file. */
static char *(*find_demangle(void))(const char *, char *, size_t *, int *)
{
	static char *(*demangle)(const char *, char *, size_t *, int *);
	static bool looked;

	if (!looked) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

		looked = true;
		if (library)
			demangle = (__typeof__(demangle))dlsym(library, "__cxa_demangle");
	}
	return demangle;
}

char *symbol_readable(const char *name)
{
	char *(*demangle)(const char *, char *, size_t *, int *) =
		!strncmp(name, "_Z", 2) ? find_demangle() : NULL;
	int status;
	char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;

	return text ? text : strdup(name);
}

static const char *readable(struct symbols *symbols, const char *name)
{
	char *text = symbol_readable(name);
	const char *kept = arena_text(&symbols->arena, text, strlen(text));

	free(text);
	return kept;
}

static bool is_build(Dwfl_Module *module, const uint8_t *build_id, uint32_t bytes)
{
	const unsigned char *own;
	GElf_Addr bias, address;
	int length;

	/* Before its ELF file is looked at the module has no id. */
	if (!dwfl_module_getelf(module, &bias))
		return false;
	length = dwfl_module_build_id(module, &own, &address);
	return !bytes || (length == (int)bytes && !memcmp(own, build_id, bytes));
}

struct symbols *symbols_new(const char *path, const uint8_t *build_id, uint32_t bytes)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	struct symbols *symbols = memory_zero(1, sizeof(*symbols));
	struct stat status;

	memory_grow(symbols->found, 0, symbols->room);
	symbols->count = 1;
	/* The trace may name anything. */
	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return symbols;
	symbols->dwfl = dwfl_begin(&callbacks);
	if (!symbols->dwfl)
		return symbols;
	symbols->module = dwfl_report_elf(symbols->dwfl, path, path, -1, 0, true);
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	if (symbols->module && !is_build(symbols->module, build_id, bytes))
		symbols->module = NULL;
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->dwfl)
		dwfl_end(symbols->dwfl);
	free(symbols->found);
	hash_free(&symbols->index);
	arena_free(&symbols->arena);
	free(symbols);
}

static void look_up(struct symbols *symbols, uint64_t address, struct symbol *symbol)
{
	GElf_Off offset;
	GElf_Sym sym;
	const char *name =
		dwfl_module_addrinfo(symbols->module, address, &offset, &sym, NULL, NULL, NULL);
	Dwfl_Line *line = dwfl_module_getsrc(symbols->module, address);
	const char *file;
	int number = 0;

	/* The nearest name of a stripped file is that of another function. */
	if (name && offset < sym.st_size)
		symbol->function = readable(symbols, name);
	file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (file && number > 0) {
		symbol->file = arena_text(&symbols->arena, file, strlen(file));
		symbol->line = (uint32_t)number;
	}
}

const struct symbol *symbols_find(struct symbols *symbols, uint64_t address)
{
	uint32_t hash = (uint32_t)hash_mix(address, 0), probe = hash, at;

	while ((at = hash_next(&symbols->index, hash, &probe)))
		if (symbols->found[at]->address == address)
			return &symbols->found[at]->symbol;
	memory_grow(symbols->found, symbols->count, symbols->room);
	struct found *found = arena_get(&symbols->arena, sizeof(*found));
	found->address = address;
	if (symbols->module)
		look_up(symbols, address, &found->symbol);
	symbols->found[symbols->count] = found;
	hash_add(&symbols->index, hash, symbols->count++);
	return &found->symbol;
}
