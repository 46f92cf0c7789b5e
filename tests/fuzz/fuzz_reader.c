/*
 * fuzz_reader.c: any bytes as a trace: the reader and `tare dump` end, within bounds.
 */
#include "analyzer/dump.h"
#include "tests/fuzz/repair.h"

static void read_trace(const char *path, size_t size, FILE *out)
{
	char message[128] = "";
	enum trace_open_error error;
	struct trace_batch batch;
	uint64_t last = 0, events = 0, again = 0;

	struct trace_reader *reader = trace_open(path, &error, message, sizeof(message));
	check((reader != NULL) == (error == TRACE_OPEN_OK) && (reader || message[0]));
	if (reader) {
		while (trace_next_batch(reader, &batch)) {
			check(batch.count > 0);
			for (uint32_t i = 0; i < batch.count; i++) {
				const struct trace_event *event = &batch.events[i];

				check(event->time >= last &&
				      event->field_count <= TRACE_FIELDS_MAX);
				check(trace_event_described(reader, event->code) != NULL);
				last = event->time;
			}
			events += batch.count;
		}
		/* Cut in the middle of the second reading. */
		trace_rewind(reader);
		if (events % 3 == 0)
			check(truncate(path, (off_t)(size / 2)) == 0);
		while (trace_next_batch(reader, &batch))
			again += batch.count;
		check(again <= events);
		trace_rewind(reader);
		struct dump_options options = { .out = out, .records = true, .events = true };
		options.json = events % 2;
		check(dump_trace(reader, &options) == 0);
		rewind(out);
		trace_close(reader);
	}
}
