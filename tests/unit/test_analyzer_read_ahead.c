/*
 * test_analyzer_read_ahead.c: what a thread of its own has decoded is what the caller would have.
 */
#include "tests/unit/traces_util.h"

#include "analyzer/read_ahead.h"

#define EVENTS  1200000u
#define THREADS 3u

/* What tells two readings of a trace apart, with the batches' borders. */
static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3u;
}

static uint64_t mix_batch(uint64_t sum, const struct trace_batch *batch)
{
	sum = mix(sum, batch->thread);
	sum = mix(sum, batch->count);
	sum = mix(sum, batch->depth);
	sum = mix(sum, batch->block << 2 | (uint64_t)batch->block_start << 1 | batch->gap);
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct trace_event *event = &batch->events[i];

		sum = mix(mix(sum, event->time), event->code);
		for (uint32_t f = 0; f < event->field_count; f++)
			sum = mix(sum, event->fields[f]);
	}
	return sum;
}

/* Runs of all lengths of one thread, before another's: batches from one event to whole chunks. */
static void write_trace(const char *path, uint32_t events)
{
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffers[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		buffers[i] = trace_buffer_acquire(file, 0);
	for (uint32_t i = 0, run = 0; i < events / 2; run++)
		for (uint32_t length = run * 7919 % 400 % (run % 3 ? 5 : 400) + 1;
		     length && i < events / 2; length--)
			put_pair(buffers[run % THREADS], i++);
	for (unsigned i = 0; i < THREADS; i++)
		trace_buffer_release(buffers[i]);
	trace_file_end(file, TRACE_END_EXIT);
	trace_file_forget(file);
	free(file);
}

static void check(uint32_t events, bool by_thread)
{
	char *path = temp_path(), message[256];
	struct trace_batch batch;
	struct read_ahead ahead;
	uint64_t direct = 0, read = 0, last;
	struct trace_reader *reader;

	write_trace(path, events);
	reader = trace_open(path, NULL, message, sizeof(message));
	assert_non_null(reader);
	while (trace_next_batch(reader, &batch))
		direct = mix_batch(direct, &batch);
	last = trace_get_summary(reader)->last_time;
	trace_rewind(reader);
	read_ahead_start(&ahead, reader);
	assert_int_equal(ahead.thread != NULL, by_thread);
	while (read_ahead_next(&ahead, &batch))
		read = mix_batch(read, &batch);
	read_ahead_end(&ahead);
	assert_true(read == direct && direct);
	assert_true(trace_get_summary(reader)->last_time == last);
	trace_close(reader);
	temp_remove(path);
}

static void test_long(void **state)
{
	(void)state;
	check(EVENTS, true);
}

static void test_short(void **state)
{
	(void)state;
	check(1000, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
