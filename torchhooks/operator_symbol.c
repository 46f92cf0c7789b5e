/*
 * operator_symbol.c: the symbol of a dispatching function, by an address in it.
 *
 * dladdr looks at all of libtorch_cpu's 75 000 symbols each time, and a program runs some hundred
 * operators. So the 3 000 that can be meant are sorted out once, in 40 KB.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include "torchhooks/elf_image.h"
#include "torchhooks/operators.h"
#include "torchhooks/torch.h"

#define DISPATCHER       "_ZN2at4_ops" /* at::_ops:: */
#define DISPATCHER_BYTES (sizeof(DISPATCHER) - 1)

struct function {
	uint32_t start, bytes; /* from the library's base */
	uint32_t name;         /* in its strings */
};

static struct functions {
	struct elf_image image;
	struct function *table;
	uint32_t count;
} functions;

static bool is_dispatcher(const struct elf_image *image, const ElfW(Sym) * symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_value + symbol->st_size <= UINT32_MAX &&
	       strncmp(image->strings + symbol->st_name, DISPATCHER, DISPATCHER_BYTES) == 0;
}

/* Shell sort: qsort may allocate. */
static void sort(struct function *table, uint32_t count)
{
	for (uint32_t gap = count / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11) {
		for (uint32_t i = gap; i < count; i++) {
			struct function moved = table[i];
			uint32_t at = i;

			for (; at >= gap && table[at - gap].start > moved.start; at -= gap)
				table[at] = table[at - gap];
			table[at] = moved;
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	if (strcmp(base ? base + 1 : info->dlpi_name, "libtorch_cpu.so") != 0)
		return 0;
	elf_image_look(info, context);
	return 1;
}

static void fill(void)
{
	const struct elf_image *image = &functions.image;
	struct function *table;
	uint32_t count = 0;

	dl_iterate_phdr(visit, &functions.image);
	for (uint32_t i = 0; i < image->symbol_count; i++)
		count += is_dispatcher(image, &image->symbols[i]);
	table = mmap(NULL, (count + 1) * sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return;
	count = 0;
	for (uint32_t i = 0; i < image->symbol_count; i++) {
		const ElfW(Sym) *symbol = &image->symbols[i];

		if (is_dispatcher(image, symbol))
			table[count++] = (struct function){ (uint32_t)symbol->st_value,
							    (uint32_t)symbol->st_size,
							    symbol->st_name };
	}
	sort(table, count);
	functions.table = table;
	functions.count = count;
}

static const char *find(uint64_t address)
{
	uint64_t offset = address - functions.image.base;
	uint32_t low = 0, high = functions.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (functions.table[middle].start <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && offset - functions.table[low - 1].start < functions.table[low - 1].bytes)
		return functions.image.strings + functions.table[low - 1].name;
	return NULL;
}

/* While one thread fills the table, the others do without. */
const char *operator_symbol(uint64_t address)
{
	static bool begun, filled;
	Dl_info info;
	const char *found;

	if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE) &&
	    !__atomic_exchange_n(&begun, true, __ATOMIC_RELAXED)) {
		fill();
		__atomic_store_n(&filled, true, __ATOMIC_RELEASE);
	}
	found = __atomic_load_n(&filled, __ATOMIC_ACQUIRE) ? find(address) : NULL;
	if (found)
		return found;
	return dladdr((void *)address, &info) ? info.dli_sname : NULL;
}
