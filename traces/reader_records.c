/*
 * reader_records.c: gives the definitions of a trace to a visitor. See reader.h.
 */
#include "traces/bytes.h"
#include "traces/reader_internal.h"

/* One block of records. Returns what `visit` returned; *whole tells whether all of it made sense. */
static int visit_records(struct trace_reader *reader, const uint8_t *bytes, size_t length,
			 trace_record_visit *visit, void *context, bool *whole)
{
	union trace_record record;
	int result = 0;

	*whole = true;
	while (length && !result) {
		uint32_t total = length < TRACE_RECORD_HEADER_BYTES ? 0 : get_u32(bytes);

		if (total < TRACE_RECORD_HEADER_BYTES || total > length) {
			*whole = false;
			return 0;
		}
		unsigned type = get_u16(bytes + 4);
		const uint8_t *fields = bytes + TRACE_RECORD_HEADER_BYTES;
		size_t field_bytes = total - TRACE_RECORD_HEADER_BYTES;
		bool known = type < TRACE_RECORD_TYPES && trace_record_descs[type].name;
		bool fits = known && trace_record_decode(type, fields, field_bytes, &record) == 0;

		if (known && !fits)
			*whole = false;
		if (!known && !reader->records_counted)
			reader->summary.unknown_records++;
		if (visit && (fits || !known))
			result = visit(context, type, known ? &record : NULL, fields, field_bytes);
		bytes += total;
		length -= total;
	}
	return result;
}

/* The records of a frame, decompressed. */
static bool load_records(struct trace_reader *reader, const struct reader_block *block,
			 const uint8_t **bytes_p, size_t *length_p)
{
	struct trace_frame frame;
	const uint8_t *payload;

	if (block->live != READER_NOT_LIVE) {
		const struct reader_live *live = &reader->lives[block->live];

		*bytes_p = live->bytes + live->times_bytes + live->ids_bytes;
		*length_p = live->defs_bytes;
		return true;
	}
	if (!reader_read_frame(reader, block, &frame, &payload) || frame.type != TRACE_FRAME_DEFS)
		return false;
	*length_p = frame.ids_bytes;
	if (!reader_room(&reader->records, &reader->records_room, *length_p + 1))
		return false;
	*bytes_p = reader->records;
	return reader_unpack(reader, frame.codec, payload, frame.bytes - sizeof(frame),
			     reader->records, *length_p);
}

int trace_each_record(struct trace_reader *reader, trace_record_visit *visit, void *context)
{
	uint64_t total = 0;
	int result = 0;

	for (size_t i = 0; i < reader->defs.count && !result && total <= READER_RECORDS_MAX; i++) {
		struct reader_block *block = &reader->defs.items[i];
		const uint8_t *bytes;
		size_t length;
		bool whole = false;

		if (load_records(reader, block, &bytes, &length) &&
		    (total += length) <= READER_RECORDS_MAX)
			result = visit_records(reader, bytes, length, visit, context, &whole);
		if (!whole && !block->reported) {
			block->reported = 1;
			reader->summary.damaged_frames++;
			reader->summary.truncated = true;
		}
	}
	reader->records_counted = true;
	return result;
}
