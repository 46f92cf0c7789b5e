/*
 * got.c: see got.h.
 */
#include "torchhooks/got.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torchhooks/elf_image.h"
#include "traces/machine.h"

struct patch {
	const char *file;
	struct got_hook *hooks;
	unsigned count;
};

/*
 * A slot holds the function, or, bound lazily, an address in the library's own PLT. Anything else is
 * not understood, or not relocated yet: it stays as it is.
 */
static bool slot_write(const struct elf_image *image, uintptr_t *slot, struct got_hook *hook)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)slot & ~(page - 1), held = *slot;
	uintptr_t real = (uintptr_t)dlsym(RTLD_DEFAULT, hook->name);
	bool protected = (uintptr_t)slot >= (image->relro_start & ~(page - 1)) &&
			 (uintptr_t)slot < (image->relro_end & ~(page - 1));

	if (held == (uintptr_t)hook->replacement)
		return true;
	if (!real || (held != real && (held < image->start || held >= image->end)))
		return false;
	if (mprotect((void *)start, page, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(hook->real, (void *)real, __ATOMIC_RELAXED);
	__atomic_store_n(slot, (uintptr_t)hook->replacement, __ATOMIC_RELEASE);
	if (protected)
		mprotect((void *)start, page, PROT_READ);
	return true;
}

static void table_patch(const struct elf_image *image, unsigned table, struct patch *patch)
{
	for (size_t i = 0; i < image->relocation_count[table]; i++) {
		const ElfW(Rela) *relocation = &image->relocations[table][i];
		unsigned type = ELF64_R_TYPE(relocation->r_info);

		if (type != MACHINE_RELOCATION_JUMP_SLOT && type != MACHINE_RELOCATION_GLOB_DAT)
			continue;
		const ElfW(Sym) *symbol = &image->symbols[ELF64_R_SYM(relocation->r_info)];
		const char *name = image->strings + symbol->st_name;

		for (unsigned j = 0; name[0] == 'P' && j < patch->count; j++) {
			struct got_hook *hook = &patch->hooks[j];

			if (strcmp(name, hook->name) == 0)
				hook->patched |= slot_write(
					image, (uintptr_t *)(image->base + relocation->r_offset),
					hook);
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
	struct patch *patch = context;
	size_t length = strlen(info->dlpi_name), file_length = strlen(patch->file);
	struct elf_image image;

	(void)size;
	if (length < file_length ||
	    strcmp(info->dlpi_name + length - file_length, patch->file) != 0)
		return 0;
	if (elf_image_look(info, &image)) {
		table_patch(&image, 0, patch);
		table_patch(&image, 1, patch);
	}
	return 1;
}

void got_patch(const char *file, struct got_hook *hooks, unsigned count)
{
	struct patch patch = { .file = file, .hooks = hooks, .count = count };

	dl_iterate_phdr(visit, &patch);
}
