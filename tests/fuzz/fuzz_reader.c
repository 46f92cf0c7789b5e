/*
 * fuzz_reader.c: any bytes as a trace: the reader and `tare dump` end, within bounds.
 *
 * Each input is read as it is, and once more with its checksums made right: else nearly everything would
 * be refused before it is looked at.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyzer/dump.h"
#include "traces/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition)
{
	if (!condition)
		abort();
}

static void read_trace(const uint8_t *data, size_t size, FILE *out)
{
	char path[64], message[128] = "";
	enum trace_open_error error;
	struct trace_batch batch;
	uint64_t last = 0, events = 0, again = 0;
	int fd = memfd_create("trace", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct trace_reader *reader = trace_open(path, &error, message, sizeof(message));
	check((reader != NULL) == (error == TRACE_OPEN_OK) && (reader || message[0]));
	if (reader) {
		while (trace_next_batch(reader, &batch)) {
			check(batch.count > 0);
			for (uint32_t i = 0; i < batch.count; i++) {
				const struct trace_event *event = &batch.events[i];

				check(event->time >= last &&
				      event->field_count <= TRACE_FIELDS_MAX);
				check(trace_event_described(reader, event->code) != NULL);
				last = event->time;
			}
			events += batch.count;
		}
		/* Cut in the middle of the second reading. */
		trace_rewind(reader);
		if (events % 3 == 0)
			check(ftruncate(fd, (off_t)(size / 2)) == 0);
		while (trace_next_batch(reader, &batch))
			again += batch.count;
		check(again <= events);
		trace_rewind(reader);
		struct dump_options options = { .out = out, .records = true, .events = true };
		options.json = events % 2;
		check(dump_trace(reader, &options) == 0);
		rewind(out);
		trace_close(reader);
	}
	close(fd);
}

/* Makes the checksums of the header and of all frames right. */
static void repair(uint8_t *data, size_t size)
{
	struct trace_header header;
	struct trace_frame frame;

	if (size < 2 * TRACE_PAGE)
		return;
	memcpy(&header, data, sizeof(header));
	memcpy(header.magic, TRACE_MAGIC, sizeof(header.magic));
	header.version = TRACE_VERSION;
	header.header_bytes = 2 * TRACE_PAGE;
	header.descriptor_bytes %= TRACE_PAGE;
	header.descriptor_crc = crc32c(0, data + TRACE_PAGE, header.descriptor_bytes);
	header.crc = crc32c(0, &header, offsetof(struct trace_header, crc));
	memcpy(data, &header, sizeof(header));
	for (size_t at = header.header_bytes; size - at >= sizeof(frame); at += frame.bytes) {
		memcpy(&frame, data + at, sizeof(frame));
		frame.sync = TRACE_FRAME_SYNC;
		if (frame.bytes < sizeof(frame) || frame.bytes > size - at)
			frame.bytes = (uint32_t)(size - at);
		size_t payload = frame.type == TRACE_FRAME_LIVE ? 0 : frame.bytes - sizeof(frame);
		frame.crc = 0;
		frame.crc = crc32c(crc32c(0, &frame, sizeof(frame)), data + at + sizeof(frame),
				   payload);
		memcpy(data + at, &frame, sizeof(frame));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *out;
	uint8_t *repaired = malloc(size + 1);

	if (!out)
		out = fopen("/dev/null", "w");
	check(out && repaired);
	read_trace(data, size, out);
	memcpy(repaired, data, size);
	repair(repaired, size);
	read_trace(repaired, size, out);
	free(repaired);
	return 0;
}
