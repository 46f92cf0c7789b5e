/*
 * reader_merge.c: decodes blocks of events and merges the threads by time. See reader.h.
 *
 * A heap holds one cursor for each thread that has begun and not ended. A cursor has one decompressed
 * block and one chunk of decoded events; batches are pieces of chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/bytes.h"
#include "traces/reader_internal.h"

/* The most bytes that an event of known size takes in either stream. */
#define EVENT_BYTES_MAX ((TRACE_FIELDS_MAX + 1) * VARINT_BYTES_MAX)

/*
 * As get_varint, where at least VARINT_BYTES_MAX bytes are there: no check of the end, and one load
 * for most numbers.
 */
static inline __attribute__((always_inline)) const uint8_t *get_varint_fast(const uint8_t *in,
									    uint64_t *value)
{
	uint64_t word;

	if (__builtin_expect(!(in[0] & 0x80), 1)) {
		*value = in[0];
		return in + 1;
	}
	if (__builtin_expect(!(in[1] & 0x80), 1)) {
		*value = (in[0] & 0x7fu) | (uint64_t)in[1] << 7;
		return in + 2;
	}
	memcpy(&word, in, sizeof(word));
	uint64_t stop = ~word & 0x8080808080808080u;
	if (__builtin_expect(!stop, 0))
		return get_varint(in, in + VARINT_BYTES_MAX, value);
	/* Drops what is behind the last byte, then closes the gaps between groups of 7, 14, 28 bits. */
	word &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7fu;
	word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
	word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
	*value = (word & 0x0fffffffu) | (word & 0x0fffffff00000000u) >> 4;
	return in + (__builtin_ctzll(stop) + 1) / 8;
}

enum decode_result { DECODE_MORE, DECODE_DAMAGED, DECODE_UNKNOWN };

/* One event, with every check. */
static enum decode_result decode_one(const struct trace_reader *reader,
				     struct reader_cursor *cursor, struct trace_event *event)
{
	const uint8_t *id = cursor->id;
	uint64_t step, head, value;
	const uint8_t *time = get_varint(cursor->time, cursor->time_end, &step);

	if (!time || cursor->now + step < cursor->now)
		return DECODE_DAMAGED;
	id = get_varint(id, cursor->id_end, &head);
	if (!id)
		return DECODE_DAMAGED;
	unsigned code = head & TRACE_CODE_MASK;
	unsigned count = reader->field_counts[code];
	if (!count)
		return DECODE_UNKNOWN;
	event->fields[0] = head >> TRACE_CODE_BITS;
	for (unsigned i = 1; i < count; i++) {
		id = get_varint(id, cursor->id_end, &value);
		if (!id)
			return DECODE_DAMAGED;
		if (i < TRACE_FIELDS_MAX)
			event->fields[i] = value;
	}
	cursor->time = time;
	cursor->id = id;
	cursor->now += step;
	event->time = cursor->now;
	event->code = code;
	event->field_count = count < TRACE_FIELDS_MAX ? count : TRACE_FIELDS_MAX;
	return DECODE_MORE;
}

/*
 * Up to `room` events of the streams' safe part, where no single read can pass the end. Stops before
 * anything that decode_one has to look at. Returns how many.
 */
static uint32_t decode_fast(const struct trace_reader *reader, struct reader_cursor *cursor,
			    struct trace_event *events, uint32_t room)
{
	const uint8_t *time = cursor->time, *id = cursor->id;
	uint64_t now = cursor->now;
	struct trace_event *event = events, *end = events + room;

	if (cursor->time_end - time < VARINT_BYTES_MAX || cursor->id_end - id < EVENT_BYTES_MAX)
		return 0;
	const uint8_t *time_last = cursor->time_end - VARINT_BYTES_MAX;
	const uint8_t *id_last = cursor->id_end - EVENT_BYTES_MAX;
	for (; event < end && time <= time_last && id <= id_last; event++) {
		uint64_t step, head;
		const uint8_t *next_time = get_varint_fast(time, &step);
		const uint8_t *next_id = get_varint_fast(id, &head);

		if (__builtin_expect(!next_time || !next_id || now + step < now, 0))
			break;
		unsigned code = head & TRACE_CODE_MASK;
		unsigned count = reader->field_counts[code];
		if (__builtin_expect(count - 1 >= TRACE_FIELDS_MAX, 0))
			break;
		event->fields[0] = head >> TRACE_CODE_BITS;
		for (unsigned i = 1; i < count && next_id; i++)
			next_id = get_varint_fast(next_id, &event->fields[i]);
		if (__builtin_expect(!next_id, 0))
			break;
		time = next_time;
		id = next_id;
		event->time = now += step;
		event->code = code;
		event->field_count = count;
	}
	cursor->time = time;
	cursor->id = id;
	cursor->now = now;
	return (uint32_t)(event - events);
}

/* What this version knows of an event and the file's version did not, reads as 0. */
static void complete_fields(const struct trace_reader *reader, struct trace_event *events,
			    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		unsigned code = events[i].code;

		for (unsigned f = reader->field_counts[code];
		     f < trace_event_descs[code].field_count; f++)
			events[i].fields[f] = 0;
	}
}

static void block_damaged(struct trace_reader *reader, struct reader_block *block, bool unknown)
{
	if (block->reported)
		return;
	block->reported = 1;
	reader->summary.truncated = true;
	if (unknown)
		reader->summary.unknown_events++;
	else
		reader->summary.damaged_frames++;
}

/* At the end of a block: it must hold as many events as it says, and no more. */
static void block_finish(struct trace_reader *reader, struct reader_cursor *cursor, bool early)
{
	struct trace_event event;

	if (!early && cursor->time == cursor->time_end && cursor->id == cursor->id_end)
		return;
	bool unknown = decode_one(reader, cursor, &event) == DECODE_UNKNOWN;
	/* Of a live block the end may be cut off, which is counted elsewhere. */
	if (unknown || cursor->current->live == READER_NOT_LIVE)
		block_damaged(reader, cursor->current, unknown);
	cursor->lost = true;
}

/* Fills the chunk with the next events of the block. False: the block has no more. */
static bool chunk_fill(struct trace_reader *reader, struct reader_cursor *cursor)
{
	uint32_t want = cursor->left < cursor->chunk_room ? cursor->left : cursor->chunk_room;
	uint32_t got = 0;
	bool early = false;

	while (got < want) {
		uint32_t fast = decode_fast(reader, cursor, cursor->chunk + got, want - got);

		got += fast;
		if (got == want)
			break;
		if (decode_one(reader, cursor, &cursor->chunk[got]) != DECODE_MORE) {
			cursor->left = got;
			early = true;
			break;
		}
		got++;
	}
	cursor->left -= got;
	if (!cursor->left)
		block_finish(reader, cursor, early);
	if (reader->older)
		complete_fields(reader, cursor->chunk, got);
	cursor->at = 0;
	cursor->decoded = got;
	return got;
}

uint32_t reader_count_events(const struct trace_reader *reader, const struct reader_live *live)
{
	struct reader_cursor cursor = {
		.time = live->bytes,
		.time_end = live->bytes + live->times_bytes,
		.id = live->bytes + live->times_bytes,
		.id_end = live->bytes + live->times_bytes + live->ids_bytes,
	};
	struct trace_event event;
	uint32_t count = 0;

	while (cursor.time < cursor.time_end && cursor.id < cursor.id_end &&
	       decode_one(reader, &cursor, &event) == DECODE_MORE)
		count++;
	return count;
}

/* Room for a chunk of the block's events, each of which has an id of a byte at least. */
static bool chunk_room(struct reader_cursor *cursor)
{
	size_t most = (size_t)(cursor->id_end - cursor->id);
	uint32_t room = cursor->left < READER_CHUNK ? cursor->left : READER_CHUNK;

	if (room > most)
		room = most ? (uint32_t)most : 1;
	if (room <= cursor->chunk_room)
		return true;
	free(cursor->chunk);
	cursor->chunk = malloc(room * sizeof(*cursor->chunk));
	cursor->chunk_room = cursor->chunk ? room : 0;
	return cursor->chunk;
}

/* Decompresses a block. */
static bool block_load(struct trace_reader *reader, struct reader_cursor *cursor,
		       struct reader_block *block)
{
	struct trace_frame frame;
	const uint8_t *payload;
	uint64_t first_time = block->first_time;

	if (block->live != READER_NOT_LIVE) {
		const struct reader_live *live = &reader->lives[block->live];

		cursor->time = live->bytes;
		cursor->id = cursor->time_end = cursor->time + live->times_bytes;
		cursor->id_end = cursor->id + live->ids_bytes;
		cursor->left = reader_count_events(reader, live);
		cursor->depth = live->header.depth;
	} else {
		if (!reader_read_frame(reader, block, &frame, &payload) ||
		    frame.type != TRACE_FRAME_EVENTS)
			return false;
		size_t ids_packed = frame.bytes - sizeof(frame) - frame.times_packed;

		if (!reader_room(&cursor->data, &cursor->data_room,
				 (size_t)frame.times_bytes + frame.ids_bytes + 1))
			return false;
		cursor->time = cursor->data;
		cursor->id = cursor->time_end = cursor->time + frame.times_bytes;
		cursor->id_end = cursor->id + frame.ids_bytes;
		if (!reader_unpack(reader, frame.codec, payload, frame.times_packed, cursor->data,
				   frame.times_bytes) ||
		    !reader_unpack(reader, frame.codec, payload + frame.times_packed, ids_packed,
				   cursor->data + frame.times_bytes, frame.ids_bytes))
			return false;
		cursor->left = frame.events;
		cursor->depth = frame.depth;
	}
	if (first_time > cursor->now)
		cursor->now = first_time;
	return chunk_room(cursor);
}

/* Has events in the chunk, or returns false: the thread has ended. */
static bool cursor_fill(struct trace_reader *reader, struct reader_cursor *cursor)
{
	cursor->block_start = false;
	while (!cursor->left || !chunk_fill(reader, cursor)) {
		if (cursor->next == cursor->thread->count)
			return false;

		struct reader_block *block =
			&reader->blocks.items[cursor->thread->first + cursor->next++];
		cursor->gap |= cursor->lost || block->block != cursor->expected;
		cursor->lost = false;
		cursor->expected = block->block + 1;
		cursor->current = block;
		cursor->block_start = true;
		if (!block_load(reader, cursor, block)) {
			block_damaged(reader, block, false);
			cursor->left = 0;
			cursor->lost = true;
		}
	}
	return true;
}

static bool earlier(const struct reader_head *a, const struct reader_head *b)
{
	return a->time != b->time ? a->time < b->time : a->thread < b->thread;
}

static void heap_up(struct trace_reader *reader, uint32_t i)
{
	struct reader_head *heap = reader->heap, moved = heap[i];

	for (; i && earlier(&moved, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = moved;
}

static void heap_down(struct trace_reader *reader)
{
	struct reader_head *heap = reader->heap, moved = heap[0];
	uint32_t i = 0, child;

	for (; (child = 2 * i + 1) < reader->heap_count; i = child) {
		if (child + 1 < reader->heap_count && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &moved))
			break;
		heap[i] = heap[child];
	}
	heap[i] = moved;
}

static void cursor_release(struct trace_reader *reader, struct reader_cursor *cursor)
{
	cursor->free_next = reader->free_cursors;
	reader->free_cursors = cursor;
}

/* Lets the next thread take part. False: memory is short, its events are left out. */
static bool thread_begin(struct trace_reader *reader)
{
	const struct reader_thread *thread = &reader->threads[reader->next_thread++];
	struct reader_cursor *cursor = reader->free_cursors;

	if (cursor)
		reader->free_cursors = cursor->free_next;
	else if (!(cursor = calloc(1, sizeof(*cursor))))
		return false;
	cursor->thread = thread;
	cursor->next = 0;
	cursor->expected = 0;
	cursor->now = 0;
	cursor->gap = cursor->lost = false;
	cursor->left = 0;
	if (!cursor_fill(reader, cursor)) {
		cursor_release(reader, cursor);
		return true;
	}
	reader->heap[reader->heap_count] = (struct reader_head){
		.time = cursor->chunk[0].time,
		.thread = thread->thread,
		.cursor = cursor,
	};
	heap_up(reader, reader->heap_count++);
	return true;
}

/* After a batch was given out: puts its thread back into order. */
static void heap_settle(struct trace_reader *reader)
{
	struct reader_cursor *cursor = reader->heap[0].cursor;

	if (cursor->at < cursor->decoded || cursor_fill(reader, cursor)) {
		reader->heap[0].time = cursor->chunk[cursor->at].time;
	} else {
		cursor_release(reader, cursor);
		reader->heap[0] = reader->heap[--reader->heap_count];
	}
	if (reader->heap_count > 1)
		heap_down(reader);
}

/* Where the events of the heap's first end that come before all other threads' next. */
static uint32_t batch_end(const struct trace_reader *reader)
{
	const struct reader_head *first = &reader->heap[0];
	const struct reader_cursor *cursor = first->cursor;
	struct reader_head limit = { .time = UINT64_MAX, .thread = UINT32_MAX };
	uint32_t end = cursor->at + 1;

	for (uint32_t i = 1; i < 3 && i < reader->heap_count; i++)
		if (earlier(&reader->heap[i], &limit))
			limit = reader->heap[i];
	if (reader->next_thread < reader->thread_count &&
	    reader->threads[reader->next_thread].first_time <= limit.time)
		limit = (struct reader_head){
			.time = reader->threads[reader->next_thread].first_time
		};
	/* Of one time, the thread with the lower number goes first. It is not 0 here: we are earlier. */
	if (first->thread > limit.thread)
		limit.time--;
	if (cursor->chunk[cursor->decoded - 1].time <= limit.time)
		return cursor->decoded;
	while (cursor->chunk[end].time <= limit.time)
		end++;
	return end;
}

bool trace_next_batch(struct trace_reader *reader, struct trace_batch *batch)
{
	if (reader->given_out)
		heap_settle(reader);
	reader->given_out = false;
	while (reader->next_thread < reader->thread_count) {
		const struct reader_thread *next = &reader->threads[reader->next_thread];

		if (reader->heap_count && reader->heap[0].time < next->first_time)
			break;
		if (!thread_begin(reader))
			reader->summary.truncated = true;
	}
	if (!reader->heap_count)
		return false;

	struct reader_cursor *cursor = reader->heap[0].cursor;
	uint32_t start = cursor->at;
	bool first = cursor->block_start && !start;

	cursor->at = batch_end(reader);
	batch->thread = reader->heap[0].thread;
	batch->depth = cursor->depth;
	batch->block_start = first;
	batch->gap = first && cursor->gap;
	batch->block = cursor->current->block;
	batch->count = cursor->at - start;
	batch->events = &cursor->chunk[start];
	if (first)
		cursor->gap = false;
	reader->given_out = true;
	uint64_t last = batch->events[batch->count - 1].time;
	/* A trace of more than 2^56 units, years, is damaged there. */
	if (last > reader->summary.last_time && last - reader->header.open.units < (uint64_t)1
											   << 56)
		reader->summary.last_time = last;
	return true;
}

void trace_rewind(struct trace_reader *reader)
{
	while (reader->heap_count)
		cursor_release(reader, reader->heap[--reader->heap_count].cursor);
	reader->next_thread = 0;
	reader->given_out = false;
}

void reader_merge_free(struct trace_reader *reader)
{
	struct reader_cursor *cursor;

	trace_rewind(reader);
	while ((cursor = reader->free_cursors)) {
		reader->free_cursors = cursor->free_next;
		free(cursor->data);
		free(cursor->chunk);
		free(cursor);
	}
	free(reader->heap);
}
