/*
 * read_ahead.h: a trace's batches of events; those of a long one are decoded by a thread of their own, while the
 * caller works on those before.
 *
 * For analyzer/'s model. Between start and end nobody else may read events from the reader, or ask for its summary.
 */
#pragma once

#include "traces/reader.h"

struct read_ahead {
	struct trace_reader *reader;
	struct read_ahead_thread *thread; /* NULL: there is none, the caller decodes */
};

/* From the reader's next event on. Never fails: where no thread can be had, the caller decodes. */
void read_ahead_start(struct read_ahead *ahead, struct trace_reader *reader);

/* As trace_next_batch. */
bool read_ahead_next(struct read_ahead *ahead, struct trace_batch *batch);

/* After the last batch: the reader is the caller's again. */
void read_ahead_end(struct read_ahead *ahead);
