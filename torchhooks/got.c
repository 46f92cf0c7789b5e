/*
 * got.c: see got.h.
 */
#include "torchhooks/got.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traces/machine.h"

struct patch {
	const char *file;
	struct got_hook *hooks;
	unsigned count, done;
};

struct library {
	uintptr_t base, start, end; /* addresses; start to end: all that is mapped */
	uintptr_t relro_start, relro_end;
	const ElfW(Rela) * tables[2]; /* of the PLT, and the others */
	size_t table_bytes[2];
	const ElfW(Sym) * symbols;
	const char *strings;
};

/* glibc has put the library's address into the pointers of its dynamic section. */
static struct library library_look(const struct dl_phdr_info *info)
{
	struct library library = { .base = info->dlpi_addr, .start = UINTPTR_MAX };
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = library.base + header->p_vaddr;

		if (header->p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *)at;
		} else if (header->p_type == PT_GNU_RELRO) {
			library.relro_start = at;
			library.relro_end = at + header->p_memsz;
		} else if (header->p_type == PT_LOAD) {
			library.start = at < library.start ? at : library.start;
			if (at + header->p_memsz > library.end)
				library.end = at + header->p_memsz;
		}
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		uintptr_t pointer = dynamic->d_un.d_ptr;

		if (pointer < library.base)
			pointer += library.base;
		switch (dynamic->d_tag) {
		case DT_SYMTAB: library.symbols = (const void *)pointer; break;
		case DT_STRTAB: library.strings = (const void *)pointer; break;
		case DT_JMPREL: library.tables[0] = (const void *)pointer; break;
		case DT_PLTRELSZ: library.table_bytes[0] = dynamic->d_un.d_val; break;
		case DT_RELA: library.tables[1] = (const void *)pointer; break;
		case DT_RELASZ: library.table_bytes[1] = dynamic->d_un.d_val; break;
		}
	}
	return library;
}

/*
 * A slot holds the function, or, bound lazily, an address in the library's own PLT. Anything else is
 * not understood, or not relocated yet: it stays as it is.
 */
static bool slot_write(const struct library *library, uintptr_t *slot, struct got_hook *hook)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)slot & ~(page - 1), held = *slot;
	uintptr_t real = (uintptr_t)dlsym(RTLD_DEFAULT, hook->name);
	bool protected = (uintptr_t)slot >= (library->relro_start & ~(page - 1)) &&
			 (uintptr_t)slot < (library->relro_end & ~(page - 1));

	if (held == (uintptr_t)hook->replacement)
		return true;
	if (!real || (held != real && (held < library->start || held >= library->end)))
		return false;
	if (mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(hook->real, (void *)real, __ATOMIC_RELAXED);
	__atomic_store_n(slot, (uintptr_t)hook->replacement, __ATOMIC_RELEASE);
	if (protected)
		mprotect((void *)start, page, PROT_READ);
	return true;
}

static void table_patch(const struct library *library, const ElfW(Rela) * table, size_t bytes,
			struct patch *patch)
{
	for (size_t i = 0; table && i < bytes / sizeof(*table); i++) {
		unsigned type = ELF64_R_TYPE(table[i].r_info);

		if (type != MACHINE_RELOCATION_JUMP_SLOT && type != MACHINE_RELOCATION_GLOB_DAT)
			continue;
		const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(table[i].r_info)];
		const char *name = library->strings + symbol->st_name;

		for (unsigned j = 0; name[0] == 'P' && j < patch->count; j++) {
			struct got_hook *hook = &patch->hooks[j];

			if (strcmp(name, hook->name) == 0)
				hook->patched |= slot_write(
					library, (uintptr_t *)(library->base + table[i].r_offset),
					hook);
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
	struct patch *patch = context;
	size_t length = strlen(info->dlpi_name), file_length = strlen(patch->file);
	struct library library;

	(void)size;
	if (length < file_length ||
	    strcmp(info->dlpi_name + length - file_length, patch->file) != 0)
		return 0;
	library = library_look(info);
	if (!library.symbols || !library.strings)
		return 1;
	for (unsigned i = 0; i < 2; i++)
		table_patch(&library, library.tables[i], library.table_bytes[i], patch);
	return 1;
}

unsigned got_patch(const char *file, struct got_hook *hooks, unsigned count)
{
	struct patch patch = { .file = file, .hooks = hooks, .count = count };

	dl_iterate_phdr(visit, &patch);
	for (unsigned i = 0; i < count; i++)
		patch.done += hooks[i].patched;
	return patch.done;
}
