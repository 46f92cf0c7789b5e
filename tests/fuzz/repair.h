/*
 * repair.h: what fuzz targets that read traces share. Each input is read as it is, and once more with its
 * checksums made right: else nearly everything would be refused before it is looked at.
 *
 * Such a target defines read_trace() alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traces/crc32c.h"
#include "traces/reader.h"

/* What is done with a trace of `size` bytes; `out` takes what is printed. */
static void read_trace(const char *path, size_t size, FILE *out);

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

static void check(int condition)
{
	if (!condition)
		abort();
}

/* A file of its own, without a folder; its name is in `path`. Close it when done. */
static int file_of(const uint8_t *data, size_t size, char path[64])
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void read_bytes(const uint8_t *data, size_t size, FILE *out)
{
	char path[64];
	int fd = file_of(data, size, path);

	read_trace(path, size, out);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *out;
	uint8_t *repaired = malloc(size + 1);

	if (!out)
		out = fopen("/dev/null", "w");
	check(out && repaired);
	read_bytes(data, size, out);
	memcpy(repaired, data, size);
	repair(repaired, size);
	read_bytes(repaired, size, out);
	free(repaired);
	return 0;
}
