/*
 * calibration_file.c: see calibration_file.h. Linked into both sides.
 */
#include "traces/calibration_file.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include "traces/machine.h"

#define PS_MAX 100000000u /* 0.1 ms: more is damage */

/* ---------------------------------------------------------------- putting texts together */

struct out {
	char *next, *end;
	bool cut;
};

static void add_bytes(struct out *out, const char *bytes, size_t length)
{
	if (length >= (size_t)(out->end - out->next)) {
		out->cut = true;
		return;
	}
	memcpy(out->next, bytes, length);
	out->next += length;
	*out->next = '\0';
}

static void add(struct out *out, const char *text)
{
	add_bytes(out, text, strlen(text));
}

static void add_number(struct out *out, uint64_t number, unsigned base)
{
	char digits[20], *digit = digits + sizeof(digits);

	do {
		*--digit = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	add_bytes(out, digit, (size_t)(digits + sizeof(digits) - digit));
}

/* ---------------------------------------------------------------- the key */

void calibration_processor(char out[64])
{
	machine_name(out);
	/* A key is one line. */
	for (char *c = out; *c; c++)
		if (*c < ' ')
			*c = ' ';
}

/* `at` bytes from the start of `image`, where so many are in it. */
static const void *part(const void *image, size_t bytes, uint64_t at, uint64_t length)
{
	return at <= bytes && length <= bytes - at ? (const uint8_t *)image + at : NULL;
}

static const Elf64_Nhdr *find_note(const void *image, size_t bytes, const Elf64_Phdr *segment)
{
	uint64_t at = segment->p_offset, end = at + segment->p_filesz;

	while (at < end && at % _Alignof(Elf64_Nhdr) == 0) {
		const Elf64_Nhdr *note = part(image, bytes, at, sizeof(*note));
		uint64_t length = !note ? 0 :
					  sizeof(*note) + ((uint64_t)note->n_namesz + 3) / 4 * 4 +
						  ((uint64_t)note->n_descsz + 3) / 4 * 4;

		if (!note || !part(image, bytes, at, length))
			break;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(note + 1, ELF_NOTE_GNU, 4))
			return note;
		at += length;
	}
	return NULL;
}

void calibration_build(const void *image, size_t bytes, char out[41])
{
	const Elf64_Ehdr *header = part(image, bytes, 0, sizeof(*header));
	const Elf64_Nhdr *note = NULL;

	out[0] = '\0';
	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_phoff % _Alignof(Elf64_Phdr))
		return;
	for (unsigned i = 0; i < header->e_phnum && !note; i++) {
		const Elf64_Phdr *segment = part(image, bytes,
						 header->e_phoff + (uint64_t)i * sizeof(*segment),
						 sizeof(*segment));

		if (segment && segment->p_type == PT_NOTE)
			note = find_note(image, bytes, segment);
	}
	if (!note)
		return;
	const uint8_t *id = (const uint8_t *)(note + 1) + 4;
	for (unsigned i = 0; i < note->n_descsz && i < 20; i++) {
		out[2 * i] = "0123456789abcdef"[id[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
		out[2 * i + 2] = '\0';
	}
}

bool calibration_key(char text[CALIBRATION_KEY_MAX], const char *exe, const char *processor,
		     const char *build)
{
	struct out out = { text, text + CALIBRATION_KEY_MAX, false };
	struct stat status;

	text[0] = '\0';
	if (strchr(exe, '\n') || stat(exe, &status) != 0)
		return false;
	add(&out, exe);
	add(&out, ", ");
	add_number(&out, (uint64_t)status.st_size, 10);
	add(&out, " bytes of ");
	add_number(&out, (uint64_t)status.st_mtim.tv_sec, 10);
	add(&out, ".");
	add_number(&out, (uint64_t)status.st_mtim.tv_nsec, 10);
	add(&out, ", ");
	add(&out, processor);
	add(&out, ", libtare ");
	add(&out, build);
	return !out.cut;
}

void calibration_name(char text[CALIBRATION_NAME_MAX], const char *key)
{
	struct out out = { text, text + CALIBRATION_NAME_MAX, false };
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *key; key++)
		hash = (hash ^ (uint8_t)*key) * 0x100000001b3u;
	add(&out, "calibration-");
	add_number(&out, hash, 16);
}

bool calibration_folder(char *text, size_t room, const char *xdg_cache_home, const char *home)
{
	struct out out = { text, text + room, false };

	if (xdg_cache_home && *xdg_cache_home == '/') {
		add(&out, xdg_cache_home);
	} else if (home && *home == '/') {
		add(&out, home);
		add(&out, "/.cache");
	} else {
		return false;
	}
	add(&out, "/tare");
	return !out.cut;
}

/* ---------------------------------------------------------------- reading it */

struct in {
	const char *next, *end;
};

static bool take(struct in *in, const char *text)
{
	size_t length = strlen(text);

	if (length > (size_t)(in->end - in->next) || memcmp(in->next, text, length))
		return false;
	in->next += length;
	return true;
}

static bool take_word(struct in *in, struct trace_str *word)
{
	const char *start = in->next;

	while (in->next < in->end && ((*in->next >= 'a' && *in->next <= 'z') || *in->next == '_'))
		in->next++;
	*word = (struct trace_str){ start, (uint32_t)(in->next - start) };
	return word->length;
}

/* A space before it. */
static bool take_number(struct in *in, uint32_t *number_p)
{
	uint32_t number = 0;
	unsigned digits = 0;

	if (!take(in, " "))
		return false;
	for (; in->next < in->end && *in->next >= '0' && *in->next <= '9'; in->next++, digits++) {
		number = number * 10 + (uint32_t)(*in->next - '0');
		if (number > PS_MAX)
			return false;
	}
	*number_p = number;
	return digits;
}

static bool take_weight(struct in *in, struct record_CALIBRATION *record)
{
	static const char source[] = "calibrated";

	*record = (struct record_CALIBRATION){ .source = { source, sizeof(source) - 1 } };
	return take(in, "weight ") && take_word(in, &record->kind) &&
	       take_number(in, &record->distance) && take_number(in, &record->interval_ns) &&
	       take_number(in, &record->inside_ps) && take_number(in, &record->outside_ps) &&
	       take_number(in, &record->error_ps) && take(in, "\n");
}

unsigned calibration_parse(const char *data, size_t bytes, const char *key,
			   struct record_CALIBRATION *records)
{
	struct in in = { data, data + bytes };
	unsigned count = 0;

	if (!take(&in, CALIBRATION_FIRST_LINE))
		return 0;
	if (key && (!take(&in, key) || !take(&in, "\n")))
		return 0;
	while (!key && in.next < in.end && *in.next++ != '\n')
		;
	while (!take(&in, CALIBRATION_LAST_LINE)) {
		if (count == CALIBRATION_WEIGHTS_MAX || !take_weight(&in, &records[count]))
			return 0;
		count++;
	}
	return in.next == in.end ? count : 0;
}
