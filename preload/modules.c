/* modules.c: see modules.h. */
#include "preload/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODULES_MAX 512u
#define NOTE_ALIGN  4u

static struct module {
	uintptr_t start, end; /* of its code */
	uintptr_t file_start;
	uint64_t bias;
	uint32_t id;
} modules[MODULES_MAX];
static uint32_t module_count, module_ids;

/* A line of /proc/self/maps. */
struct mapping {
	uintptr_t start, end, offset;
	bool readable, executable;
	const char *path; /* "" where there is none */
};

/* The part of a file that is mapped from its begin: holds its headers. */
struct head {
	uintptr_t start, end;
	char path[PATH_MAX];
};

struct lines {
	int fd;
	size_t at, have;
	char bytes[PATH_MAX + 256];
};

void modules_forget(void)
{
	module_count = module_ids = 0;
}

uint32_t modules_find(uintptr_t address, uint64_t *bias_p)
{
	for (uint32_t i = 0; i < module_count; i++) {
		if (address >= modules[i].start && address < modules[i].end) {
			*bias_p = modules[i].bias;
			return modules[i].id;
		}
	}
	*bias_p = 0;
	return 0;
}

/* ---------------------------------------------------------------- /proc/self/maps */

/* By system call: libc's own are cancellation points. NULL: there are no more. */
static char *next_line(struct lines *lines)
{
	for (;;) {
		char *line = lines->bytes + lines->at;
		char *end = memchr(line, '\n', lines->have - lines->at);
		long got;

		if (end) {
			*end = '\0';
			lines->at = (size_t)(end + 1 - lines->bytes);
			return line;
		}
		memmove(lines->bytes, line, lines->have - lines->at);
		lines->have -= lines->at;
		lines->at = 0;
		got = syscall(SYS_read, lines->fd, lines->bytes + lines->have,
			      sizeof(lines->bytes) - lines->have);
		if (got <= 0)
			return NULL;
		lines->have += (size_t)got;
	}
}

static uintptr_t parse_hex(char **text)
{
	uintptr_t value = 0;

	for (;; (*text)++) {
		unsigned digit = (unsigned char)**text;

		if (digit >= '0' && digit <= '9')
			digit -= '0';
		else if (digit >= 'a' && digit <= 'f')
			digit -= 'a' - 10;
		else
			return value;
		value = value << 4 | digit;
	}
}

/* "start-end rwxp offset device inode    path" */
static struct mapping parse(char *line)
{
	struct mapping mapping = { .start = parse_hex(&line) };

	line += *line == '-';
	mapping.end = parse_hex(&line);
	line += *line == ' ';
	mapping.readable = line[0] == 'r';
	mapping.executable = line[0] && line[1] && line[2] == 'x';
	for (int field = 0; field < 4; field++) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
		if (field == 0)
			mapping.offset = parse_hex(&line);
	}
	mapping.path = line;
	return mapping;
}

/* ---------------------------------------------------------------- a file's headers, in memory */

static struct trace_str find_build_id(const struct head *head, const Elf64_Phdr *phdr,
				      uint64_t bias)
{
	uintptr_t at = bias + phdr->p_vaddr, end = at + phdr->p_memsz;

	if (at < head->start || end > head->end || end < at)
		return (struct trace_str){ 0 };
	while (end - at >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		uint64_t name = (note->n_namesz + NOTE_ALIGN - 1) & ~(uint64_t)(NOTE_ALIGN - 1);
		uint64_t data = (note->n_descsz + NOTE_ALIGN - 1) & ~(uint64_t)(NOTE_ALIGN - 1);
		const char *text = (const char *)(note + 1);

		at += sizeof(*note);
		if (name + data > end - at)
			break;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(text, "GNU", 4))
			return (struct trace_str){ text + name, note->n_descsz };
		at += name + data;
	}
	return (struct trace_str){ 0 };
}

/* False where it is no ELF file. */
static bool read_headers(const struct head *head, uint64_t *bias_p, struct trace_str *build_id_p)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)head->start;
	uintptr_t room = head->end - head->start;
	bool has_bias = false;

	if (room < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phoff > room ||
	    header->e_phnum > (room - header->e_phoff) / sizeof(Elf64_Phdr))
		return false;
	const Elf64_Phdr *phdrs = (const Elf64_Phdr *)(head->start + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum && !has_bias; i++) {
		if (phdrs[i].p_type == PT_LOAD) {
			*bias_p = head->start - ((phdrs[i].p_vaddr - phdrs[i].p_offset) &
						 ~(uint64_t)(TRACE_PAGE - 1));
			has_bias = true;
		}
	}
	for (unsigned i = 0; has_bias && i < header->e_phnum && !build_id_p->length; i++)
		if (phdrs[i].p_type == PT_NOTE)
			*build_id_p = find_build_id(head, &phdrs[i], *bias_p);
	return has_bias;
}

/* ---------------------------------------------------------------- modules */

static void learn(struct trace_buffer *buffer, const struct head *head,
		  const struct mapping *mapping)
{
	struct module *module = &modules[module_count];
	struct trace_str build_id = { 0 };

	if (module_count == MODULES_MAX)
		return;
	*module = (struct module){ mapping->start, mapping->end, head->start, 0, 0 };
	for (uint32_t i = 0; i < module_count; i++) {
		if (modules[i].file_start == head->start) {
			module->bias = modules[i].bias;
			module->id = modules[i].id;
		}
	}
	if (!module->id) {
		if (!read_headers(head, &module->bias, &build_id) ||
		    !trace_define(buffer, TRACE_RECORD_MODULE,
				  &(struct record_MODULE){
					  .module = module_ids + 1,
					  .bias = module->bias,
					  .path = { head->path, (uint32_t)strlen(head->path) },
					  .build_id = build_id,
				  }))
			return;
		module->id = ++module_ids;
	}
	module_count++;
}

static bool holds_unknown(const struct mapping *mapping, const uintptr_t *addresses, uint32_t count)
{
	uint64_t bias;

	for (uint32_t i = 0; i < count; i++)
		if (addresses[i] - 1 >= mapping->start && addresses[i] - 1 < mapping->end &&
		    !modules_find(addresses[i] - 1, &bias))
			return true;
	return false;
}

void modules_learn(struct trace_buffer *buffer, const uintptr_t *addresses, uint32_t count)
{
	static const struct mapping everything = { .end = UINTPTR_MAX };
	static struct lines lines;
	static struct head head;
	char *line;

	if (!holds_unknown(&everything, addresses, count))
		return;
	lines.at = lines.have = 0;
	head.start = head.end = 0;
	lines.fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (lines.fd < 0)
		return;
	while ((line = next_line(&lines))) {
		struct mapping mapping = parse(line);
		size_t bytes = strlen(mapping.path) + 1;

		if (!mapping.offset && mapping.readable && bytes > 1 &&
		    bytes <= sizeof(head.path)) {
			head.start = mapping.start;
			head.end = mapping.end;
			memcpy(head.path, mapping.path, bytes);
		}
		if (mapping.executable && head.start && !strcmp(mapping.path, head.path) &&
		    holds_unknown(&mapping, addresses, count))
			learn(buffer, &head, &mapping);
	}
	syscall(SYS_close, lines.fd);
}
