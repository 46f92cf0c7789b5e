/*
 * layout.h: the fixed structures of a trace file: header, frames, live blocks.
 *
 * For the writer and the reader. Everything here is in files that people keep: see FORMAT.md.
 *
 *     [ header page | descriptor text, padded ][ frame ][ frame ] ...
 *     frame = [ struct trace_frame | payload ]
 *       EVENTS: two streams, times and ids, of one thread            (written when a block is full)
 *       DEFS:   records                                              (written when definitions fill up)
 *       LIVE:   [ padding to a page | struct trace_live | streams ]  (mapped; changes while it runs)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC            "TARETRC\n"
#define TRACE_FRAME_SYNC       0x4d524654u /* "TFRM" */
#define TRACE_LIVE_MAGIC       0x4556494cu /* "LIVE" */
#define TRACE_PAGE             4096u
#define TRACE_RECORD_BYTES_MAX (16u << 20) /* a longer record is neither written nor read */

enum trace_clock { TRACE_CLOCK_TSC = 1, TRACE_CLOCK_MONOTONIC = 2 };

/* The same moment on the trace's clock (in its units) and on CLOCK_MONOTONIC. */
struct trace_clock_pair {
	uint64_t units;
	uint64_t monotonic_ns;
};

enum trace_end {
	TRACE_END_NONE = 0, /* still running, or killed */
	TRACE_END_EXIT = 1, /* the process ended by exit or by returning from main */
	TRACE_END_EXEC = 2, /* another program took its place */
};

enum trace_stop {
	TRACE_STOP_NONE = 0,
	TRACE_STOP_MAX_BYTES = 1,  /* TARE_MAX_BYTES reached */
	TRACE_STOP_DURATION = 2,   /* TARE_DURATION over */
	TRACE_STOP_WRITE = 3,      /* a write failed or was short: stop_errno */
	TRACE_STOP_FILE_LIMIT = 4, /* RLIMIT_FSIZE would have been passed */
	TRACE_STOP_FILE_GONE =
		5,          /* the descriptor was closed and the file cannot be opened again */
	TRACE_STOP_MAP = 6, /* a live block could not be mapped: stop_errno */
};

/* The first page of the file. Mapped by the writer: the part from `end` on changes while it runs. */
struct trace_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;     /* header page and descriptor text, padded to TRACE_PAGE */
	uint32_t descriptor_bytes; /* of the text, which starts at TRACE_PAGE */
	uint32_t descriptor_crc;
	uint32_t clock;       /* enum trace_clock */
	uint32_t clock_shift; /* a unit is 2^clock_shift ticks of that clock */
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t start_realtime_ns;   /* CLOCK_REALTIME at `open` */
	struct trace_clock_pair load; /* when libtare.so was loaded: with `open`, a first rate */
	struct trace_clock_pair open; /* when the trace was opened */
	uint32_t crc;                 /* CRC32C of all bytes before this field */
	uint32_t reserved;
	struct trace_clock_pair end; /* at the process's end or the last stop; 0: not reached */
	uint64_t lost_events;
	uint64_t negative_steps; /* times that went backwards and were stored as 0 steps */
	uint32_t stopped;        /* enum trace_stop: recording ended before the process */
	uint32_t stop_errno;
	uint32_t ended;          /* enum trace_end */
	uint32_t unseen_threads; /* of which nothing is recorded: each is a lost event too */
};

enum trace_frame_type { TRACE_FRAME_EVENTS = 1, TRACE_FRAME_DEFS = 2, TRACE_FRAME_LIVE = 3 };
enum trace_codec { TRACE_CODEC_RAW = 0, TRACE_CODEC_ZSTD = 1 };

/* Header of a frame. Unknown types are skipped by their length. */
struct trace_frame {
	uint32_t sync;
	uint32_t bytes; /* of the frame, this header included */
	uint8_t type;   /* enum trace_frame_type */
	uint8_t codec;  /* enum trace_codec, of each stream on its own */
	uint16_t reserved;
	uint32_t thread;       /* EVENTS: number of the thread. DEFS: of the slot */
	uint64_t block;        /* counts from 0 for each thread (EVENTS) or slot (DEFS) */
	uint64_t first_time;   /* EVENTS: what the first time step is relative to, clock units */
	uint32_t depth;        /* EVENTS: spans open at its start */
	uint32_t events;       /* EVENTS: how many */
	uint32_t times_bytes;  /* EVENTS: length of the times stream once decompressed; else 0 */
	uint32_t ids_bytes;    /* length of the ids stream, or of the records, once decompressed */
	uint32_t times_packed; /* EVENTS: bytes of the payload that hold the times; the rest: ids */
	uint32_t crc; /* CRC32C of this header with crc = 0 and of the payload (LIVE: header only) */
	struct trace_clock_pair clock; /* when the frame was written */
};

/*
 * A live block, at the first page boundary of the file at or behind the LIVE frame's header. Offsets
 * count from this struct. A slot serves one thread after the other.
 *
 * Written in this order: contents, then the length that covers them. When a block has been written
 * as a frame: lengths = 0, then block and first_time for the next. So a reader drops a live block
 * that is already framed (same thread and block) and never sees bytes that are not complete.
 */
struct trace_live {
	uint32_t magic;
	uint32_t slot;   /* number of the slot, from 0 */
	uint32_t thread; /* 0: no thread now */
	uint32_t depth;  /* spans open at the block's start */
	uint64_t block;
	uint64_t first_time;
	uint64_t lengths; /* times_bytes | ids_bytes << 32: one aligned store publishes both */
	uint64_t defs_block;
	uint64_t defs_bytes;
	uint32_t times_offset, times_room;
	uint32_t ids_offset, ids_room;
	uint32_t defs_offset, defs_room;
};

_Static_assert(sizeof(struct trace_header) == 136, "part of the format");
_Static_assert(offsetof(struct trace_header, crc) == 80, "part of the format");
_Static_assert(sizeof(struct trace_frame) == 72, "part of the format");
_Static_assert(sizeof(struct trace_live) == 80, "part of the format");
