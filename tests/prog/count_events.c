/*
 * count_events.c: TRACE [FUNCTION]: counts the events of a trace with the reader, and prints one JSON object:
 *   {"threads": {"1": {"FRAME": 12, "LEAVE": 11, ...}}, "times": {"1": {"first_ns": 700, "last_ns": 9100,
 *    "open": 0}}, "recorded_ns": 9100, "lived_ns": 9150, ...}
 * FUNCTION: of frames those of Python functions with that name alone. Times are since the trace was opened, by
 * CLOCK_MONOTONIC. `open`: spans that have not ended; `recorded_ns`: to the last event of any thread;
 * `lived_ns`: to the process's end, null where that is not known.
 * For traces that are too large to be dumped, and for what must not come from analyzer/.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/reader.h"

#define THREADS_MAX 16384u

static uint64_t counts[THREADS_MAX][TRACE_EVENT_CODES];

#define CODES_MAX 65536u

static const char *function;
static bool is_function[CODES_MAX];

static int find_function(void *unused, unsigned type, const union trace_record *record,
			 const uint8_t *bytes, size_t length)
{
	(void)unused, (void)bytes, (void)length;
	if (record && type == TRACE_RECORD_CODE && record->CODE.code < CODES_MAX)
		is_function[record->CODE.code] =
			record->CODE.name.length == strlen(function) &&
			!memcmp(record->CODE.name.data, function, record->CODE.name.length);
	return 0;
}

static bool is_wanted(const struct trace_event *event)
{
	return !function || event->code != TRACE_FRAME ||
	       (event->fields[0] < CODES_MAX && is_function[event->fields[0]]);
}

static struct times {
	uint64_t first, last, open;
	bool seen;
} times[THREADS_MAX];

static void follow(const struct trace_reader *reader, const struct trace_batch *batch)
{
	struct times *own = &times[batch->thread];

	if (!own->seen)
		own->first = batch->events[0].time;
	own->seen = true;
	own->last = batch->events[batch->count - 1].time;
	if (batch->block_start)
		own->open = batch->depth;
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct trace_event *event = &batch->events[i];
		const struct trace_event_desc *desc = trace_event_described(reader, event->code);

		if (event->code == TRACE_LEAVE)
			own->open -= own->open > 0;
		else if (event->code == TRACE_LEAVE_TO)
			own->open = event->fields[0];
		else
			own->open += desc && desc->kind == TRACE_KIND_SPAN;
	}
}

static void print_times(const struct trace_reader *reader)
{
	const struct trace_header *header = trace_get_header(reader);
	double start = (double)header->open.monotonic_ns;
	uint64_t last = header->open.units;
	const char *comma = "";

	printf("\"times\": {");
	for (unsigned thread = 0; thread < THREADS_MAX; thread++) {
		const struct times *own = &times[thread];

		if (!own->seen)
			continue;
		last = own->last > last ? own->last : last;
		printf("%s\"%u\": {\"first_ns\": %.0f, \"last_ns\": %.0f, \"open\": %lu}", comma,
		       thread, trace_monotonic_ns(reader, own->first) - start,
		       trace_monotonic_ns(reader, own->last) - start, own->open);
		comma = ", ";
	}
	printf("}, \"recorded_ns\": %.0f, ", trace_monotonic_ns(reader, last) - start);
	if (header->ended != TRACE_END_NONE)
		printf("\"lived_ns\": %.0f, ", (double)header->end.monotonic_ns - start);
	else
		printf("\"lived_ns\": null, ");
}

int main(int argc, char **argv)
{
	enum trace_open_error error;
	char message[512];
	struct trace_batch batch;
	const char *comma = "";
	struct trace_reader *reader =
		trace_open(argc > 1 ? argv[1] : "", &error, message, sizeof(message));

	if (!reader) {
		fprintf(stderr, "%s\n", message);
		return 2;
	}
	function = argc > 2 ? argv[2] : NULL;
	if (function)
		trace_each_record(reader, find_function, NULL);
	while (trace_next_batch(reader, &batch)) {
		if (batch.count && batch.thread < THREADS_MAX)
			follow(reader, &batch);
		for (uint32_t i = 0; i < batch.count && batch.thread < THREADS_MAX; i++)
			if (is_wanted(&batch.events[i]))
				counts[batch.thread][batch.events[i].code & TRACE_CODE_MASK]++;
	}
	printf("{\"threads\": {");
	for (unsigned thread = 0; thread < THREADS_MAX; thread++) {
		const char *inner = "";
		uint64_t all = 0;

		for (unsigned code = 0; code < TRACE_EVENT_CODES; code++)
			all += counts[thread][code];
		if (!all)
			continue;
		printf("%s\"%u\": {", comma, thread);
		comma = ", ";
		for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
			const struct trace_event_desc *desc = trace_event_described(reader, code);

			if (!counts[thread][code])
				continue;
			printf("%s\"%s\": %lu", inner, desc ? desc->name : "?",
			       counts[thread][code]);
			inner = ", ";
		}
		printf("}");
	}
	const struct trace_summary *summary = trace_get_summary(reader);
	const struct trace_header *header = trace_get_header(reader);
	printf("}, ");
	print_times(reader);
	printf("\"events\": %lu, \"live_events\": %lu, \"lost\": %lu, \"damaged\": %lu,"
	       " \"missing\": %lu, \"truncated\": %s, \"stopped\": %u, \"ended\": %u}\n",
	       summary->events, summary->live_events, header->lost_events, summary->damaged_frames,
	       summary->missing_blocks, summary->truncated ? "true" : "false", header->stopped,
	       header->ended);
	trace_close(reader);
	return 0;
}
