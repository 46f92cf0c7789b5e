/*
 * reader.h: reads a trace file, also one that is damaged, cut off, or still being written.
 *
 * For analyzer/ and tests. Uses bounded memory: an index entry per frame, one decompressed block per
 * thread that is being merged. Trusts no length, id or count that it read: what does not fit is
 * skipped and counted as a problem.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/layout.h"
#include "traces/schema.h"

struct trace_reader;

enum trace_open_error {
	TRACE_OPEN_OK,
	TRACE_OPEN_SYSTEM,      /* errno says why */
	TRACE_OPEN_EMPTY,       /* no bytes in it */
	TRACE_OPEN_NOT_A_TRACE, /* does not begin with TRACE_MAGIC */
	TRACE_OPEN_NEWER,       /* version above TRACE_VERSION */
	TRACE_OPEN_DAMAGED,     /* the header is cut off or fails its checksum */
};

/* Opens `path` and indexes its frames. NULL on an error; `message` then holds one line that says what to do. */
struct trace_reader *trace_open(const char *path, enum trace_open_error *error_p, char *message,
				size_t message_room);
void trace_close(struct trace_reader *reader);

/* What was found, complete once trace_open has returned and all events were read. */
struct trace_summary {
	uint64_t file_bytes;
	uint64_t frames;      /* whole ones, of all types */
	uint64_t events;      /* in finished frames, by their headers; plus those of live blocks */
	uint64_t live_events; /* of them, in live blocks */
	uint64_t event_bytes; /* that events take: frames and the used part of live blocks */
	uint64_t definition_bytes;
	uint64_t skipped_bytes;    /* between frames: damage */
	uint64_t damaged_frames;   /* bad checksum, or contents that do not decode */
	uint64_t missing_blocks;   /* gaps in a thread's block numbers */
	uint64_t duplicate_blocks; /* live blocks dropped because they are framed already */
	uint64_t cut_bytes;        /* at the end: an incomplete frame, whose block is not live */
	uint64_t unknown_records;  /* of types this version does not know */
	uint64_t unknown_events;
	uint64_t last_time; /* of the events that were read, clock units; 0: none yet */
	uint32_t threads;
	bool truncated; /* cut, damaged or incomplete: warn */
};

const struct trace_header *trace_get_header(const struct trace_reader *reader);
const struct trace_summary *trace_get_summary(const struct trace_reader *reader);

/* Why recording stopped before the process ended, and how that ended: NULL where they did not. */
const char *trace_stop_text(const struct trace_header *header);
const char *trace_end_text(const struct trace_header *header);

/* Descriptor text of the file (what its writer knew), not terminated. */
struct trace_str trace_get_descriptor(const struct trace_reader *reader);

/* ns per clock unit, from the two clock pairs of the file that are furthest apart. */
double trace_unit_ns(const struct trace_reader *reader);

/* CLOCK_MONOTONIC in ns at `units`. */
double trace_monotonic_ns(const struct trace_reader *reader, uint64_t units);

/*
 * All records, in file order, to `visit`. `record` is NULL for types that this version does not know.
 * Strings are valid during the call. May be called again. Stops when `visit` returns non-zero, and
 * returns that.
 */
typedef int trace_record_visit(void *context, unsigned type, const union trace_record *record,
			       const uint8_t *bytes, size_t length);
int trace_each_record(struct trace_reader *reader, trace_record_visit *visit, void *context);

struct trace_event {
	uint64_t time; /* clock units */
	uint32_t code; /* enum trace_event_code; may be one this version does not know */
	uint32_t field_count;
	uint64_t fields[TRACE_FIELDS_MAX]; /* only field_count of them are set */
};

/*
 * Consecutive events of one thread. `block_start`: these are the first of a block, whose spans open at
 * its start number `depth`; `gap`: events of this thread are missing just before.
 */
struct trace_batch {
	uint32_t thread;
	uint32_t depth;
	bool block_start;
	bool gap;
	uint64_t block;
	uint32_t count;
	const struct trace_event *events;
};

/*
 * The next events in time order over all threads: a batch ends where another thread's next event is
 * earlier. The batch is valid until the next call. Returns false at the end of the trace.
 */
bool trace_next_batch(struct trace_reader *reader, struct trace_batch *batch);

/* Starts over with the first event. */
void trace_rewind(struct trace_reader *reader);

/* What the file says about an event code: its name, kind and field count; NULL where it does not. */
const struct trace_event_desc *trace_event_described(const struct trace_reader *reader,
						     unsigned code);
