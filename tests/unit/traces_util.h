/*
 * traces_util.h: what the tests of traces/ share: temporary files, writing, reading, and cutting a
 * trace down to a size at which every byte can be tried.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "traces/crc32c.h"
#include "traces/reader.h"
#include "traces/writer.h"

#define UNUSED __attribute__((unused))

/* A path in a fresh folder, both removed by temp_remove. */
static UNUSED char *temp_path(void)
{
	char folder[] = "/tmp/tare-test-XXXXXX";
	char *path = malloc(sizeof(folder) + 16);

	assert_non_null(mkdtemp(folder));
	sprintf(path, "%s/a.tare", folder);
	return path;
}

static UNUSED void temp_remove(char *path)
{
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	free(path);
}

/* Bytes of a whole file; free them. */
static UNUSED uint8_t *slurp(const char *path, size_t *length_p)
{
	struct stat status;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	uint8_t *bytes = malloc((size_t)status.st_size + 1);
	assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
	close(fd);
	*length_p = (size_t)status.st_size;
	return bytes;
}

static UNUSED void spew(const char *path, const uint8_t *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static UNUSED struct trace_file *file_create(const char *path)
{
	struct trace_file *file = calloc(1, sizeof(*file));
	struct trace_clock_pair load = trace_clock_start(file);

	assert_int_equal(trace_file_create(file, path, load), 0);
	file->max_bytes = UINT64_MAX;
	return file;
}

static UNUSED void file_free(struct trace_file *file)
{
	trace_file_forget(file);
	free(file);
}

static UNUSED struct trace_str str(const char *text)
{
	return (struct trace_str){ text, (uint32_t)strlen(text) };
}

/* Number `i` of a thread's events: a pair for each, which read_all checks. */
static UNUSED void put_pair(struct trace_buffer *buffer, uint64_t i)
{
	uint32_t depth = buffer->depth;

	trace_enter(buffer, trace_now(buffer->file), FRAME, i % 300 + 1, i / 300 % 1000,
		    i / 300000);
	trace_leave(buffer, trace_now(buffer->file), depth, 0);
}

#define READ_THREADS 64

/* What reading a trace of put_pair gave. */
struct read_result {
	uint64_t events, pairs[READ_THREADS], first_pair[READ_THREADS], gaps, batches, order_errors,
		sequence_errors, records, record_types[TRACE_RECORD_TYPES];
	uint32_t depth_errors;
	uint64_t hash; /* of all events but tare's own */
	struct trace_summary summary;
	struct trace_header header;
	double unit_ns;
};

static UNUSED int count_record(void *context, unsigned type, const union trace_record *record,
			       const uint8_t *bytes, size_t length)
{
	struct read_result *result = context;
	uint8_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum = (uint8_t)(sum + bytes[i]);
	result->hash += sum;
	result->records++;
	result->record_types[type < TRACE_RECORD_TYPES && record ? type : 0]++;
	return 0;
}

/* Reads everything; `false` where the trace cannot be opened. */
static UNUSED bool read_all(const char *path, struct read_result *result)
{
	char message[512] = "";
	enum trace_open_error error;
	struct trace_reader *reader = trace_open(path, &error, message, sizeof(message));
	struct trace_batch batch;
	uint64_t last_time = 0;
	uint32_t depth[READ_THREADS] = { 0 };
	bool after_gap[READ_THREADS] = { false };

	memset(result, 0, sizeof(*result));
	if (!reader) {
		assert_true(error != TRACE_OPEN_OK && message[0] && !strchr(message, '\n'));
		return false;
	}
	assert_int_equal(error, TRACE_OPEN_OK);
	trace_each_record(reader, count_record, result);
	for (unsigned t = 0; t < READ_THREADS; t++)
		result->first_pair[t] = UINT64_MAX;
	while (trace_next_batch(reader, &batch)) {
		/* The others share a place, where nothing is checked. */
		bool checked = batch.thread < READ_THREADS;
		uint32_t t = checked ? batch.thread : 0;

		assert_true(batch.count > 0);
		result->batches++;
		result->gaps += batch.gap;
		after_gap[t] |= batch.gap;
		if (batch.block_start) {
			result->depth_errors += checked && !batch.gap && batch.depth != depth[t];
			depth[t] = batch.depth;
		}
		for (uint32_t i = 0; i < batch.count; i++) {
			const struct trace_event *event = &batch.events[i];
			const struct trace_event_desc *desc =
				trace_event_described(reader, event->code);

			assert_non_null(desc);
			assert_int_equal(desc->field_count, event->field_count);
			result->order_errors += event->time < last_time;
			last_time = event->time;
			result->events++;
			if (desc->kind == TRACE_KIND_SPAN)
				depth[t]++;
			else if (event->code == TRACE_LEAVE && depth[t])
				depth[t]--;
			if (event->code == TRACE_FRAME) {
				uint64_t number = event->fields[0] - 1 + event->fields[1] * 300 +
						  event->fields[2] * 300000;

				if (result->first_pair[t] == UINT64_MAX)
					result->first_pair[t] = result->pairs[t] = number;
				result->sequence_errors += checked && number != result->pairs[t] &&
							   !after_gap[t];
				after_gap[t] = false;
				result->pairs[t] = number + 1;
				result->hash =
					(result->hash ^ event->time ^ number ^ t) * 0x100000001b3u;
			}
		}
	}
	result->summary = *trace_get_summary(reader);
	result->header = *trace_get_header(reader);
	result->unit_ns = trace_unit_ns(reader);

	/* Reading again gives the same, and counts nothing twice. */
	uint64_t events = 0;
	trace_rewind(reader);
	while (trace_next_batch(reader, &batch))
		events += batch.count;
	assert_int_equal(events, result->events);
	assert_memory_equal(&result->summary, trace_get_summary(reader), sizeof(result->summary));
	trace_close(reader);
	return true;
}

/*
 * The same trace with live blocks that take only what is in them, and no more of the descriptor's page
 * than is used: small enough to try every byte.
 */
static UNUSED uint8_t *compact(const uint8_t *in, size_t length, size_t *out_length_p)
{
	uint8_t *out = calloc(1, length);
	struct trace_header header;
	struct trace_frame frame;

	memcpy(&header, in, sizeof(header));
	size_t at = header.header_bytes, to = 2 * TRACE_PAGE;
	memcpy(out, in, to);
	header.header_bytes = (uint32_t)to;
	header.crc = crc32c(0, &header, offsetof(struct trace_header, crc));
	memcpy(out, &header, sizeof(header));
	for (; at < length; at += frame.bytes) {
		memcpy(&frame, in + at, sizeof(frame));
		assert_int_equal(frame.sync, TRACE_FRAME_SYNC);
		if (frame.type != TRACE_FRAME_LIVE) {
			memcpy(out + to, in + at, frame.bytes);
			to += frame.bytes;
			continue;
		}
		size_t from = (at + sizeof(frame) + TRACE_PAGE - 1) / TRACE_PAGE * TRACE_PAGE;
		size_t start = (to + sizeof(frame) + TRACE_PAGE - 1) / TRACE_PAGE * TRACE_PAGE;
		const uint8_t *live_in = in + from;
		struct trace_live live;

		memcpy(&live, live_in, sizeof(live));
		uint32_t rooms[] = { (uint32_t)live.lengths, (uint32_t)(live.lengths >> 32),
				     (uint32_t)live.defs_bytes };
		uint32_t *offsets[] = { &live.times_offset, &live.ids_offset, &live.defs_offset };
		uint32_t next = sizeof(live);
		for (unsigned i = 0; i < 3; i++) {
			memcpy(out + start + next, live_in + *offsets[i], rooms[i]);
			*offsets[i] = next;
			next += rooms[i];
		}
		live.times_room = rooms[0];
		live.ids_room = rooms[1];
		live.defs_room = rooms[2];
		memcpy(out + start, &live, sizeof(live));
		struct trace_frame shorter = frame;
		shorter.bytes = (uint32_t)(start + next - to);
		shorter.crc = 0;
		shorter.crc = crc32c(0, &shorter, sizeof(shorter));
		memcpy(out + to, &shorter, sizeof(shorter));
		to = start + next;
	}
	*out_length_p = to;
	return out;
}
