/*
 * elf_image.c: see elf_image.h.
 */
#include "torchhooks/elf_image.h"

/*
 * DT_GNU_HASH: bucket count, first symbol, words of the filter, a shift; the filter; for each bucket
 * its first symbol; for each symbol its hash, with the lowest bit set in the last one of a bucket.
 */
static uint32_t count_symbols(const uint32_t *hash)
{
	const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + hash[0];
	uint32_t last = 0;

	for (uint32_t i = 0; i < hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < hash[1])
		return 0;
	while (!(chains[last - hash[1]] & 1))
		last++;
	return last + 1;
}

/* glibc has put the library's address into the pointers of its dynamic section. */
bool elf_image_look(const struct dl_phdr_info *info, struct elf_image *image)
{
	const ElfW(Dyn) *dynamic = NULL;

	*image = (struct elf_image){ .base = info->dlpi_addr, .start = UINTPTR_MAX };
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = image->base + header->p_vaddr;

		if (header->p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *)at;
		} else if (header->p_type == PT_GNU_RELRO) {
			image->relro_start = at;
			image->relro_end = at + header->p_memsz;
		} else if (header->p_type == PT_LOAD) {
			image->start = at < image->start ? at : image->start;
			if (at + header->p_memsz > image->end)
				image->end = at + header->p_memsz;
		}
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		uintptr_t value = dynamic->d_un.d_val;
		const void *pointer =
			(const void *)(value < image->base ? value + image->base : value);

		switch (dynamic->d_tag) {
		case DT_SYMTAB: image->symbols = pointer; break;
		case DT_STRTAB: image->strings = pointer; break;
		case DT_GNU_HASH: image->symbol_count = count_symbols(pointer); break;
		case DT_JMPREL: image->relocations[0] = pointer; break;
		case DT_PLTRELSZ: image->relocation_count[0] = value / sizeof(ElfW(Rela)); break;
		case DT_RELA: image->relocations[1] = pointer; break;
		case DT_RELASZ: image->relocation_count[1] = value / sizeof(ElfW(Rela)); break;
		}
	}
	return image->symbols && image->strings;
}
