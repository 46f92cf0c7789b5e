/*
 * reader_internal.h: what the reader's files share. For traces/reader*.c only.
 *
 *     reader.c          opening, header, descriptor text, clock
 *     reader_scan.c     the index of frames, snapshots of live blocks, going on after damage
 *     reader_records.c  definitions
 *     reader_merge.c    blocks of events, decoded and merged by time
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "traces/reader.h"

/* No more is decompressed than this, whatever a header says. */
#define READER_STREAM_MAX     (1u << 20)
#define READER_DESCRIPTOR_MAX (1u << 20)
#define READER_RECORDS_MAX    (256u << 20) /* definitions in all; some KB can claim to be 16 MB */
#define READER_CHUNK          256u         /* events decoded at a time */
#define READER_NOT_LIVE       UINT32_MAX

/* A block of events or of definitions: in a frame at `offset`, or in lives[live]. */
struct reader_block {
	uint64_t offset;
	uint64_t block;
	uint64_t first_time; /* EVENTS */
	uint32_t bytes;      /* of the frame */
	uint32_t owner;      /* EVENTS: thread. DEFS: slot */
	uint32_t live;       /* READER_NOT_LIVE, or index */
	uint32_t reported;   /* counted as damaged or unknown already */
};

struct reader_blocks {
	struct reader_block *items;
	size_t count, room;
};

/* A live block as it was at one moment: the used parts of its areas, one after the other. */
struct reader_live {
	struct trace_live header;
	uint32_t times_bytes, ids_bytes, defs_bytes;
	uint8_t *bytes;
};

/* The blocks of one thread: blocks.items[first .. first + count). */
struct reader_thread {
	uint64_t first_time;
	size_t first, count;
	uint32_t thread;
};

/* A thread whose blocks are being decoded. */
struct reader_cursor {
	const struct reader_thread *thread;
	size_t next; /* block to load, counted from the thread's first */
	struct reader_block *current;
	uint64_t expected; /* number of the next block when none is missing */
	uint32_t depth;
	bool block_start, gap;
	bool lost; /* what follows what was given out could not be decoded */
	const uint8_t *time, *time_end, *id, *id_end;
	uint64_t now;
	uint32_t left;        /* events of the block that are not decoded yet */
	uint32_t at, decoded; /* chunk[at .. decoded) is to be given out */
	uint8_t *data;        /* the decompressed block */
	size_t data_room;
	struct reader_cursor *free_next;
	struct trace_event *chunk;
	uint32_t chunk_room; /* no more than its blocks can fill: there may be many threads */
};

/* A place in the heap: the next event of a thread. */
struct reader_head {
	uint64_t time;
	uint32_t thread;
	struct reader_cursor *cursor;
};

struct trace_reader {
	int fd;
	uint64_t size;
	struct trace_header header;
	struct trace_summary summary;
	struct trace_frame cut; /* header of the frame that the file ends in; all 0: none */
	struct trace_clock_pair first_pair, last_pair;
	double unit_ns;

	char *descriptor, *names; /* the text; and a copy cut into names */
	uint32_t descriptor_bytes;
	struct trace_event_desc events[TRACE_EVENT_CODES];
	uint8_t field_counts[TRACE_EVENT_CODES]; /* as written; 0: no such event */
	bool older; /* an event has fewer fields than this version knows */

	struct reader_blocks blocks, defs;
	struct reader_live *lives;
	uint32_t live_count, live_room;
	struct reader_thread *threads; /* by first_time */
	uint32_t thread_count;

	struct ZSTD_DCtx_s
		*zstd;   /* made at the first use; setting one up takes as long as a small block */
	uint8_t *packed; /* a frame as read */
	size_t packed_room;
	uint8_t *records; /* a decompressed block of definitions */
	size_t records_room;
	bool records_counted;

	struct reader_head *heap;
	uint32_t heap_count;
	uint32_t next_thread; /* threads[next_thread ..] have not begun */
	struct reader_cursor *free_cursors;
	bool given_out; /* the heap's first may have used up its chunk */
};

/* reader_scan.c: finds all frames and live blocks. Returns 0 or an errno. */
int reader_scan(struct trace_reader *reader);

/*
 * Reads a whole frame again and checks it. Its payload is at *payload_p until the next call. False:
 * the file has changed, or memory is short.
 */
bool reader_read_frame(struct trace_reader *reader, const struct reader_block *block,
		       struct trace_frame *frame, const uint8_t **payload_p);

/* Decompresses a stream to exactly `bytes` at `out`. */
bool reader_unpack(struct trace_reader *reader, unsigned codec, const uint8_t *packed,
		   size_t packed_bytes, uint8_t *out, size_t bytes);

/* Makes room for `bytes`; the contents are lost. */
bool reader_room(uint8_t **memory, size_t *room, size_t bytes);

/* Reads up to `bytes` at `offset`; returns how many. */
size_t reader_pread(int fd, void *out, size_t bytes, uint64_t offset);

/* reader_merge.c: how many events a live block holds. */
uint32_t reader_count_events(const struct trace_reader *reader, const struct reader_live *live);
void reader_merge_free(struct trace_reader *reader);
