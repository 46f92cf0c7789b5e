/*
 * reader.c: opens a trace: header, descriptor text, clock. See reader.h.
 */
#include "traces/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "traces/crc32c.h"
#include "traces/reader_internal.h"

size_t reader_pread(int fd, void *out, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got =
			pread(fd, (uint8_t *)out + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static const struct trace_event_desc *known_event(unsigned code, const char *name)
{
	const struct trace_event_desc *desc = &trace_event_descs[code];

	return desc->name && !strcmp(desc->name, name) ? desc : NULL;
}

/* Names are printed: nothing else may be in the text. */
static bool plain_words(const char *line)
{
	for (; *line; line++)
		if (!(*line >= 'a' && *line <= 'z') && !(*line >= 'A' && *line <= 'Z') &&
		    !(*line >= '0' && *line <= '9') && !strchr("_:. ", *line))
			return false;
	return true;
}

/* One line of the descriptor text: event CODE NAME KIND FIELD... */
static void descriptor_line(struct trace_reader *reader, char *line)
{
	static const char *const kinds[] = {
		[TRACE_KIND_MARK] = "mark",
		[TRACE_KIND_SPAN] = "span",
		[TRACE_KIND_LOOSE] = "loose",
		[TRACE_KIND_LEAVE] = "leave",
	};
	char *save, *end, *word = plain_words(line) ? strtok_r(line, " ", &save) : NULL;

	if (!word || strcmp(word, "event") || !(word = strtok_r(NULL, " ", &save)))
		return;
	unsigned long code = strtoul(word, &end, 10);
	char *name = strtok_r(NULL, " ", &save), *kind = name ? strtok_r(NULL, " ", &save) : NULL;
	if (*end || code >= TRACE_EVENT_CODES || !kind)
		return;

	const struct trace_event_desc *known = known_event((unsigned)code, name);
	struct trace_event_desc desc = { .name = name, .doc = known ? known->doc : "" };
	unsigned count = 0;

	while (desc.kind < TRACE_KIND_LEAVE && strcmp(kind, kinds[desc.kind]))
		desc.kind++;
	if (strcmp(kind, kinds[desc.kind]))
		return;
	for (; (word = strtok_r(NULL, " ", &save)); count++) {
		if (count >= TRACE_FIELDS_MAX)
			continue;
		desc.fields[count].name = word;
		desc.fields[count].doc =
			known && count < known->field_count ? known->fields[count].doc : "";
	}
	if (!count || count > UINT8_MAX)
		return;
	desc.field_count = count < TRACE_FIELDS_MAX ? count : TRACE_FIELDS_MAX;
	reader->events[code] = desc;
	reader->field_counts[code] = (uint8_t)count;
	reader->older |= count < trace_event_descs[code].field_count;
}

/* What this version knows, for a file whose own text is damaged. */
static void descriptor_builtin(struct trace_reader *reader)
{
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		reader->events[code] = trace_event_descs[code];
		reader->field_counts[code] = (uint8_t)trace_event_descs[code].field_count;
	}
}

static bool descriptor_read(struct trace_reader *reader)
{
	uint32_t bytes = reader->header.descriptor_bytes;
	char *save, *line;

	reader->descriptor = calloc(1, bytes + 1u);
	if (!reader->descriptor)
		return false;
	if (reader_pread(reader->fd, reader->descriptor, bytes, TRACE_PAGE) != bytes ||
	    crc32c(0, reader->descriptor, bytes) != reader->header.descriptor_crc ||
	    strlen(reader->descriptor) != bytes) {
		descriptor_builtin(reader);
		reader->summary.skipped_bytes += bytes;
		return true;
	}
	reader->descriptor_bytes = bytes;
	reader->names = strdup(reader->descriptor);
	if (!reader->names)
		return false;
	for (line = strtok_r(reader->names, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		descriptor_line(reader, line);
	return true;
}

static enum trace_open_error header_check(struct trace_reader *reader)
{
	struct trace_header *header = &reader->header;
	size_t got = reader_pread(reader->fd, header, sizeof(*header), 0);
	size_t magic = got < sizeof(header->magic) ? got : sizeof(header->magic);

	if (!got)
		return TRACE_OPEN_EMPTY;
	if (memcmp(header->magic, TRACE_MAGIC, magic))
		return TRACE_OPEN_NOT_A_TRACE;
	if (got >= offsetof(struct trace_header, header_bytes) && header->version > TRACE_VERSION)
		return TRACE_OPEN_NEWER;
	if (got < sizeof(*header) || !header->version ||
	    header->crc != crc32c(0, header, offsetof(struct trace_header, crc)) ||
	    header->header_bytes < TRACE_PAGE || header->header_bytes > READER_DESCRIPTOR_MAX ||
	    header->header_bytes % TRACE_PAGE || header->header_bytes > reader->size ||
	    header->descriptor_bytes > header->header_bytes - TRACE_PAGE)
		return TRACE_OPEN_DAMAGED;
	return TRACE_OPEN_OK;
}

/* The pairs that are furthest apart give the rate; a pair that contradicts it is damage. */
static void clock_settle(struct trace_reader *reader)
{
	const struct trace_header *header = &reader->header;

	reader->first_pair = header->load.units && header->load.units < header->open.units ?
				     header->load :
				     header->open;
	if (header->open.units > reader->last_pair.units)
		reader->last_pair = header->open;
	if (header->end.units > reader->last_pair.units &&
	    header->end.monotonic_ns > reader->last_pair.monotonic_ns)
		reader->last_pair = header->end;

	const struct trace_clock_pair *first = &reader->first_pair, *last = &reader->last_pair;
	reader->unit_ns = (double)(1u << (header->clock_shift & 15));
	if (header->clock != TRACE_CLOCK_MONOTONIC && last->units > first->units &&
	    last->monotonic_ns > first->monotonic_ns)
		reader->unit_ns = (double)(last->monotonic_ns - first->monotonic_ns) /
				  (double)(last->units - first->units);
}

static __attribute__((format(printf, 4, 5))) void say(char *message, size_t room, const char *path,
						      const char *format, ...)
{
	va_list arguments;
	int length = snprintf(message, room, "%s: ", path);

	if (length < 0 || (size_t)length >= room)
		return;
	va_start(arguments, format);
	vsnprintf(message + length, room - (size_t)length, format, arguments);
	va_end(arguments);
}

static enum trace_open_error open_and_index(struct trace_reader *reader, const char *path)
{
	struct stat status;

	reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (reader->fd < 0 || fstat(reader->fd, &status) != 0)
		return TRACE_OPEN_SYSTEM;
	if (S_ISDIR(status.st_mode)) {
		errno = EISDIR;
		return TRACE_OPEN_SYSTEM;
	}
	if (!S_ISREG(status.st_mode))
		return TRACE_OPEN_NOT_A_TRACE;
	reader->size = (uint64_t)status.st_size;

	enum trace_open_error error = header_check(reader);
	if (error != TRACE_OPEN_OK)
		return error;
	errno = ENOMEM;
	if (!descriptor_read(reader))
		return TRACE_OPEN_SYSTEM;
	errno = reader_scan(reader);
	if (errno)
		return TRACE_OPEN_SYSTEM;
	trace_each_record(reader, NULL, NULL);
	clock_settle(reader);

	struct trace_summary *found = &reader->summary;
	found->file_bytes = reader->size;
	found->truncated = found->skipped_bytes || found->damaged_frames || found->missing_blocks ||
			   found->cut_bytes;
	return TRACE_OPEN_OK;
}

struct trace_reader *trace_open(const char *path, enum trace_open_error *error_p, char *message,
				size_t message_room)
{
	struct trace_reader *reader = calloc(1, sizeof(*reader));
	enum trace_open_error error = TRACE_OPEN_SYSTEM;

	if (reader)
		error = open_and_index(reader, path);
	int saved_errno = errno;
	switch (error) {
	case TRACE_OPEN_OK: break;
	case TRACE_OPEN_SYSTEM: say(message, message_room, path, "%s", strerror(errno)); break;
	case TRACE_OPEN_EMPTY:
		say(message, message_room, path,
		    "empty: nothing was recorded, or it was not copied");
		break;
	case TRACE_OPEN_NOT_A_TRACE:
		say(message, message_room, path, "not a tare trace (they are called *.tare)");
		break;
	case TRACE_OPEN_NEWER:
		say(message, message_room, path,
		    "written by a newer tare (format %u, this one reads up to %u): use that one",
		    reader->header.version, TRACE_VERSION);
		break;
	case TRACE_OPEN_DAMAGED:
		say(message, message_room, path,
		    "its header is damaged or cut off: record it again");
		break;
	}
	if (error_p)
		*error_p = error;
	if (error != TRACE_OPEN_OK && reader) {
		trace_close(reader);
		reader = NULL;
	}
	errno = saved_errno;
	return reader;
}

void trace_close(struct trace_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	reader_merge_free(reader);
	for (uint32_t i = 0; i < reader->live_count; i++)
		free(reader->lives[i].bytes);
	free(reader->lives);
	free(reader->blocks.items);
	free(reader->defs.items);
	free(reader->threads);
	ZSTD_freeDCtx(reader->zstd);
	free(reader->packed);
	free(reader->records);
	free(reader->descriptor);
	free(reader->names);
	free(reader);
}

const struct trace_header *trace_get_header(const struct trace_reader *reader)
{
	return &reader->header;
}

const struct trace_summary *trace_get_summary(const struct trace_reader *reader)
{
	return &reader->summary;
}

const char *trace_stop_text(const struct trace_header *header)
{
	switch (header->stopped) {
	case TRACE_STOP_NONE: return NULL;
	case TRACE_STOP_MAX_BYTES: return "TARE_MAX_BYTES was reached";
	case TRACE_STOP_DURATION: return "TARE_DURATION was over";
	case TRACE_STOP_WRITE: return "a write failed";
	case TRACE_STOP_FILE_LIMIT: return "the limit of a file's size was reached";
	case TRACE_STOP_FILE_GONE: return "the file was gone";
	case TRACE_STOP_MAP: return "memory could not be mapped";
	default: return "unknown reason";
	}
}

const char *trace_end_text(const struct trace_header *header)
{
	switch (header->ended) {
	case TRACE_END_NONE: return NULL;
	case TRACE_END_EXIT: return "exit";
	case TRACE_END_EXEC: return "exec";
	default: return "unknown";
	}
}

struct trace_str trace_get_descriptor(const struct trace_reader *reader)
{
	return (struct trace_str){ reader->descriptor, reader->descriptor_bytes };
}

double trace_unit_ns(const struct trace_reader *reader)
{
	return reader->unit_ns;
}

double trace_monotonic_ns(const struct trace_reader *reader, uint64_t units)
{
	return (double)reader->first_pair.monotonic_ns +
	       (double)(int64_t)(units - reader->first_pair.units) * reader->unit_ns;
}

const struct trace_event_desc *trace_event_described(const struct trace_reader *reader,
						     unsigned code)
{
	return code < TRACE_EVENT_CODES && reader->field_counts[code] ? &reader->events[code] :
									NULL;
}
