/*
 * count_events.c: TRACE [FUNCTION]: counts the events of a trace with the reader, and prints one JSON object:
 *   {"threads": {"1": {"FRAME": 12, "LEAVE": 11, ...}}, "duplicate_blocks": 0, ...}
 * FUNCTION: of frames those of Python functions with that name alone.
 * For traces that are too large to be dumped. Linked with the traces library.
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
	printf("}, \"events\": %lu, \"live_events\": %lu, \"lost\": %lu, \"damaged\": %lu,"
	       " \"missing\": %lu, \"truncated\": %s, \"stopped\": %u, \"ended\": %u}\n",
	       summary->events, summary->live_events, header->lost_events, summary->damaged_frames,
	       summary->missing_blocks, summary->truncated ? "true" : "false", header->stopped,
	       header->ended);
	trace_close(reader);
	return 0;
}
