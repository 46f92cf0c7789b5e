/*
 * reader_scan.c: finds the frames of a trace file and takes snapshots of its live blocks.
 *
 * The file is read by pread alone: a mapping would raise SIGBUS where it is cut while we read. Live
 * blocks are taken when their frame is met and the end of the file is looked up after that, so that a
 * block that has been written out meanwhile is found further on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "traces/bytes.h"
#include "traces/crc32c.h"
#include "traces/reader_internal.h"

#define WINDOW_BYTES   (256u << 10)
#define SNAPSHOT_TRIES 1000
#define WASTED_MAX     (64u << 20)

/* The part of the file that is being looked at. */
struct window {
	int fd;
	uint64_t start;
	size_t length;
	uint8_t *bytes;
	uint64_t wasted; /* bytes that were summed up for frames that are none */
};

/* `bytes` (at most WINDOW_BYTES) of the file at `offset`, or NULL where they are not all there. */
static const uint8_t *window_at(struct window *window, uint64_t offset, size_t bytes)
{
	if (offset < window->start || offset + bytes > window->start + window->length) {
		window->start = offset;
		window->length = reader_pread(window->fd, window->bytes, WINDOW_BYTES, offset);
		if (window->length < bytes)
			return NULL;
	}
	return window->bytes + (offset - window->start);
}

static uint32_t window_crc(struct window *window, uint32_t crc, uint64_t offset, uint64_t bytes)
{
	while (bytes) {
		size_t piece = bytes < WINDOW_BYTES / 2 ? (size_t)bytes : WINDOW_BYTES / 2;
		const uint8_t *p = window_at(window, offset, piece);

		if (!p)
			return 0;
		crc = crc32c(crc, p, piece);
		offset += piece;
		bytes -= piece;
	}
	return crc;
}

static uint32_t frame_header_crc(struct trace_frame frame)
{
	frame.crc = 0;
	return crc32c(0, &frame, sizeof(frame));
}

/* Whether the sizes in a frame's header can be true. */
static bool frame_plausible(const struct trace_frame *frame)
{
	uint64_t payload = (uint64_t)frame->bytes - sizeof(*frame);

	if (frame->bytes < sizeof(*frame) || frame->times_packed > payload)
		return false;
	switch (frame->type) {
	case TRACE_FRAME_EVENTS:
		return frame->times_bytes <= READER_STREAM_MAX &&
		       frame->ids_bytes <= READER_STREAM_MAX;
	case TRACE_FRAME_DEFS:
		return frame->ids_bytes <= TRACE_RECORD_BYTES_MAX && !frame->times_packed;
	default: return true;
	}
}

enum frame_state { FRAME_WHOLE, FRAME_CUT, FRAME_DAMAGED, FRAME_NONE };

static enum frame_state frame_check(struct window *window, uint64_t offset, uint64_t size,
				    struct trace_frame *frame)
{
	const uint8_t *p =
		size - offset < sizeof(*frame) ? NULL : window_at(window, offset, sizeof(*frame));

	if (!p)
		return FRAME_CUT;
	memcpy(frame, p, sizeof(*frame));
	if (frame->sync != TRACE_FRAME_SYNC)
		return FRAME_NONE;
	if (!frame_plausible(frame))
		return FRAME_DAMAGED;
	/* The end of a live block may be cut off: what is there is read. */
	uint32_t crc = frame_header_crc(*frame);
	if (frame->type == TRACE_FRAME_LIVE)
		return crc == frame->crc ? FRAME_WHOLE : FRAME_DAMAGED;
	if (frame->bytes > size - offset)
		return FRAME_CUT;
	crc = window_crc(window, crc, offset + sizeof(*frame), frame->bytes - sizeof(*frame));
	if (crc == frame->crc)
		return FRAME_WHOLE;
	window->wasted += frame->bytes;
	return FRAME_DAMAGED;
}

/*
 * The next whole frame at or behind `offset`; `size` where there is none. Gives up where so much looks
 * like one and is none that it must be on purpose.
 */
static uint64_t frame_search(struct window *window, uint64_t offset, uint64_t size,
			     struct trace_frame *frame)
{
	const uint32_t sync = TRACE_FRAME_SYNC;

	while (size - offset >= sizeof(*frame) && window->wasted <= 4 * size + WASTED_MAX) {
		uint64_t left = size - offset;
		size_t piece = left < WINDOW_BYTES / 2 ? (size_t)left : WINDOW_BYTES / 2;
		const uint8_t *p = window_at(window, offset, piece);
		const uint8_t *hit = p ? memmem(p, piece, &sync, sizeof(sync)) : NULL;

		if (!p)
			break;
		if (!hit) {
			offset += piece - (sizeof(sync) - 1);
			continue;
		}
		offset += (uint64_t)(hit - p);
		if (frame_check(window, offset, size, frame) == FRAME_WHOLE)
			return offset;
		offset++;
	}
	return size;
}

static struct reader_block *blocks_add(struct reader_blocks *blocks)
{
	if (blocks->count == blocks->room) {
		size_t room = blocks->room ? blocks->room + blocks->room / 2 : 64;
		struct reader_block *items = realloc(blocks->items, room * sizeof(*items));

		if (!items)
			return NULL;
		blocks->items = items;
		blocks->room = room;
	}
	return &blocks->items[blocks->count++];
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many of an area's `used` bytes lie within the frame's `there` bytes. */
static uint32_t area_bytes(uint64_t used, uint32_t offset, uint32_t room, uint64_t there)
{
	uint32_t bytes = used < room ? (uint32_t)used : room;

	bytes = smaller(bytes, READER_STREAM_MAX);
	if (offset >= there)
		return 0;
	return there - offset < bytes ? (uint32_t)(there - offset) : bytes;
}

/* Whether nothing was taken away between two looks at a live block. */
static bool live_same(const struct trace_live *before, const struct trace_live *after)
{
	return before->thread == after->thread && before->block == after->block &&
	       before->first_time == after->first_time && before->depth == after->depth &&
	       before->defs_block == after->defs_block && after->defs_bytes >= before->defs_bytes &&
	       (uint32_t)after->lengths >= (uint32_t)before->lengths &&
	       after->lengths >> 32 >= before->lengths >> 32;
}

/* Takes a snapshot of the live block at `start`, of which `there` bytes are in the file. */
static int live_take(struct trace_reader *reader, uint64_t start, uint64_t there)
{
	struct reader_live live = { 0 };
	struct trace_live after;
	size_t room = 0;

	for (int tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		if (reader_pread(reader->fd, &live.header, sizeof(live.header), start) !=
			    sizeof(live.header) ||
		    live.header.magic != TRACE_LIVE_MAGIC)
			break;
		const struct trace_live *header = &live.header;
		live.times_bytes = area_bytes((uint32_t)header->lengths, header->times_offset,
					      header->times_room, there);
		live.ids_bytes = area_bytes(header->lengths >> 32, header->ids_offset,
					    header->ids_room, there);
		live.defs_bytes = area_bytes(header->defs_bytes, header->defs_offset,
					     header->defs_room, there);
		if (!reader_room(&live.bytes, &room,
				 (size_t)live.times_bytes + live.ids_bytes + live.defs_bytes + 1))
			return ENOMEM;
		uint8_t *ids = live.bytes + live.times_bytes, *defs = ids + live.ids_bytes;
		reader_pread(reader->fd, live.bytes, live.times_bytes,
			     start + header->times_offset);
		reader_pread(reader->fd, ids, live.ids_bytes, start + header->ids_offset);
		reader_pread(reader->fd, defs, live.defs_bytes, start + header->defs_offset);
		if (reader_pread(reader->fd, &after, sizeof(after), start) != sizeof(after) ||
		    !live_same(header, &after))
			continue;
		if (reader->live_count == reader->live_room) {
			uint32_t count = reader->live_room ? 2 * reader->live_room : 16;
			struct reader_live *lives = realloc(reader->lives, count * sizeof(*lives));

			if (!lives)
				break;
			reader->lives = lives;
			reader->live_room = count;
		}
		reader->lives[reader->live_count++] = live;
		return 0;
	}
	free(live.bytes);
	return 0;
}

static int frame_index(struct trace_reader *reader, uint64_t offset,
		       const struct trace_frame *frame)
{
	struct reader_block *block;
	struct stat status;

	reader->summary.frames++;
	if (frame->clock.units > reader->last_pair.units)
		reader->last_pair = frame->clock;
	switch (frame->type) {
	case TRACE_FRAME_EVENTS:
	case TRACE_FRAME_DEFS:
		block = blocks_add(frame->type == TRACE_FRAME_EVENTS ? &reader->blocks :
								       &reader->defs);
		if (!block)
			return ENOMEM;
		*block = (struct reader_block){
			.offset = offset,
			.block = frame->block,
			.first_time = frame->first_time,
			.bytes = frame->bytes,
			.owner = frame->thread,
			.live = READER_NOT_LIVE,
		};
		if (frame->type == TRACE_FRAME_EVENTS) {
			reader->summary.events += frame->events;
			reader->summary.event_bytes += frame->bytes;
		} else {
			reader->summary.definition_bytes += frame->bytes;
		}
		return 0;
	case TRACE_FRAME_LIVE: {
		uint64_t start = (offset + sizeof(*frame) + TRACE_PAGE - 1) &
				 ~(uint64_t)(TRACE_PAGE - 1);
		uint64_t end = offset + frame->bytes;
		int error = 0;

		if (end > reader->size)
			end = reader->size;
		if (start + sizeof(struct trace_live) <= end)
			error = live_take(reader, start, end - start);
		if (!error && fstat(reader->fd, &status) == 0 &&
		    (uint64_t)status.st_size > reader->size)
			reader->size = (uint64_t)status.st_size;
		return error;
	}
	default: return 0;
	}
}

static int scan_frames(struct trace_reader *reader, struct window *window)
{
	struct trace_summary *found = &reader->summary;
	uint64_t offset = reader->header.header_bytes;
	struct trace_frame frame = { 0 };

	while (offset < reader->size) {
		enum frame_state state = frame_check(window, offset, reader->size, &frame);

		if (state != FRAME_WHOLE) {
			struct trace_frame cut = frame;
			uint64_t next = frame_search(window, offset + 1, reader->size, &frame);

			if (next == reader->size && state == FRAME_CUT) {
				found->cut_bytes += next - offset;
				if (found->cut_bytes >= sizeof(cut))
					reader->cut = cut;
				break;
			}
			found->damaged_frames += state != FRAME_NONE;
			found->skipped_bytes += next - offset;
			offset = next;
			if (offset == reader->size)
				break;
		}
		int error = frame_index(reader, offset, &frame);
		if (error)
			return error;
		if (frame.bytes > reader->size - offset) {
			found->cut_bytes += reader->size - offset;
			break;
		}
		offset += frame.bytes;
	}
	return 0;
}

static int compare_blocks(const void *a, const void *b)
{
	const struct reader_block *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	if (x->live != y->live) /* the frame goes before the live block */
		return x->live > y->live ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int compare_threads(const void *a, const void *b)
{
	const struct reader_thread *x = a, *y = b;

	if (x->first_time != y->first_time)
		return x->first_time < y->first_time ? -1 : 1;
	return x->thread < y->thread ? -1 : 1;
}

/*
 * The process was killed while it wrote the last frame, or writes it now: as long as it is not whole, its block is
 * live as well, and nothing is missing.
 */
static bool cut_is_live(const struct trace_frame *cut, const struct trace_live *live)
{
	switch (cut->type) {
	case TRACE_FRAME_EVENTS:
		return cut->thread == live->thread && cut->block == live->block &&
		       live->lengths == (cut->times_bytes | (uint64_t)cut->ids_bytes << 32);
	case TRACE_FRAME_DEFS:
		return cut->thread == live->slot && cut->block == live->defs_block &&
		       cut->ids_bytes <= live->defs_bytes;
	default: return false;
	}
}

/* Adds the live blocks that are not framed as well. */
static int index_lives(struct trace_reader *reader)
{
	for (uint32_t i = 0; i < reader->live_count; i++) {
		const struct reader_live *live = &reader->lives[i];
		struct reader_block *block;

		if (cut_is_live(&reader->cut, &live->header))
			reader->summary.cut_bytes = 0;
		/* An empty one too: its number says how many were written before. */
		if (live->header.thread) {
			block = blocks_add(&reader->blocks);
			if (!block)
				return ENOMEM;
			*block = (struct reader_block){ .block = live->header.block,
							.first_time = live->header.first_time,
							.owner = live->header.thread,
							.live = i };
		}
		if (live->defs_bytes) {
			reader->summary.definition_bytes += live->defs_bytes;
			block = blocks_add(&reader->defs);
			if (!block)
				return ENOMEM;
			*block = (struct reader_block){ .block = live->header.defs_block,
							.owner = live->header.slot,
							.live = i };
		}
	}
	return 0;
}

/* Sorts, and drops what is there twice. */
static void blocks_settle(struct reader_blocks *blocks, struct trace_summary *found)
{
	size_t kept = 0;

	if (blocks->count)
		qsort(blocks->items, blocks->count, sizeof(*blocks->items), compare_blocks);
	for (size_t i = 0; i < blocks->count; i++) {
		const struct reader_block *last = kept ? &blocks->items[kept - 1] : NULL;

		if (last && last->owner == blocks->items[i].owner &&
		    last->block == blocks->items[i].block)
			found->duplicate_blocks++;
		else
			blocks->items[kept++] = blocks->items[i];
	}
	blocks->count = kept;
}

static int compare_places(const void *a, const void *b)
{
	const struct reader_block *x = a, *y = b;

	if ((x->live == READER_NOT_LIVE) != (y->live == READER_NOT_LIVE))
		return x->live == READER_NOT_LIVE ? -1 : 1;
	if (x->live != y->live)
		return x->live < y->live ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Groups the blocks by thread and counts what is missing. */
static int index_threads(struct trace_reader *reader)
{
	const struct reader_blocks *blocks = &reader->blocks;
	struct trace_summary *found = &reader->summary;
	struct reader_thread *thread = NULL;
	uint64_t expected = 0;
	uint32_t count = 0;

	for (size_t i = 0; i < blocks->count; i++)
		count += !i || blocks->items[i].owner != blocks->items[i - 1].owner;
	reader->threads = calloc(count ? count : 1, sizeof(*reader->threads));
	reader->heap = calloc(count ? count : 1, sizeof(*reader->heap));
	if (!reader->threads || !reader->heap)
		return ENOMEM;
	for (size_t i = 0; i < blocks->count; i++) {
		const struct reader_block *block = &blocks->items[i];

		if (!thread || thread->thread != block->owner) {
			thread = &reader->threads[reader->thread_count++];
			*thread = (struct reader_thread){ .first_time = block->first_time,
							  .first = i,
							  .thread = block->owner };
			expected = 0;
		}
		thread->count++;
		found->missing_blocks += block->block - expected;
		expected = block->block + 1;
		if (block->live != READER_NOT_LIVE) {
			uint32_t events = reader_count_events(reader, &reader->lives[block->live]);

			found->events += events;
			found->live_events += events;
			found->event_bytes += reader->lives[block->live].times_bytes +
					      reader->lives[block->live].ids_bytes;
		}
	}
	found->threads = reader->thread_count;
	if (reader->thread_count)
		qsort(reader->threads, reader->thread_count, sizeof(*reader->threads),
		      compare_threads);
	return 0;
}

int reader_scan(struct trace_reader *reader)
{
	struct window window = { .fd = reader->fd, .bytes = malloc(WINDOW_BYTES) };
	int error = window.bytes ? scan_frames(reader, &window) : ENOMEM;

	free(window.bytes);
	if (!error)
		error = index_lives(reader);
	if (error)
		return error;
	blocks_settle(&reader->blocks, &reader->summary);
	blocks_settle(&reader->defs, &reader->summary);
	if (reader->defs.count)
		qsort(reader->defs.items, reader->defs.count, sizeof(*reader->defs.items),
		      compare_places);
	return index_threads(reader);
}

bool reader_room(uint8_t **memory, size_t *room, size_t bytes)
{
	if (bytes <= *room)
		return true;
	free(*memory);
	*memory = malloc(bytes);
	*room = *memory ? bytes : 0;
	return *memory;
}

bool reader_read_frame(struct trace_reader *reader, const struct reader_block *block,
		       struct trace_frame *frame, const uint8_t **payload_p)
{
	if (!reader_room(&reader->packed, &reader->packed_room, block->bytes) ||
	    reader_pread(reader->fd, reader->packed, block->bytes, block->offset) != block->bytes)
		return false;
	memcpy(frame, reader->packed, sizeof(*frame));
	*payload_p = reader->packed + sizeof(*frame);
	return frame->bytes == block->bytes && frame_plausible(frame) &&
	       crc32c(frame_header_crc(*frame), *payload_p, block->bytes - sizeof(*frame)) ==
		       frame->crc;
}

bool reader_unpack(struct trace_reader *reader, unsigned codec, const uint8_t *packed,
		   size_t packed_bytes, uint8_t *out, size_t bytes)
{
	switch (codec) {
	case TRACE_CODEC_RAW:
		if (packed_bytes != bytes)
			return false;
		memcpy(out, packed, bytes);
		return true;
	case TRACE_CODEC_ZSTD:
		if (!reader->zstd && !(reader->zstd = ZSTD_createDCtx()))
			return false;
		return ZSTD_decompressDCtx(reader->zstd, out, bytes, packed, packed_bytes) == bytes;
	default: return false;
	}
}
