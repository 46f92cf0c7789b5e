/* test_traces_write.c: what the writer writes, the reader reads. */
#include "tests/unit/traces_util.h"

#include <pthread.h>

static void test_one_thread(void **state)
{
	char *path = temp_path();
	struct read_result result;

	(void)state;
	for (uint64_t pairs = 1; pairs <= 1000000; pairs *= 10) {
		struct trace_file *file = file_create(path);
		struct trace_buffer *buffer = trace_buffer_acquire(file, 0);

		errno = 77;
		for (uint64_t i = 0; i < pairs; i++)
			put_pair(buffer, i);
		assert_int_equal(errno, 77);
		/* Still being written, then ended. */
		for (int end = 0; end < 2; end++) {
			assert_true(read_all(path, &result));
			assert_int_equal(result.pairs[1], pairs);
			assert_int_equal(result.first_pair[1], 0);
			assert_int_equal(result.order_errors + result.sequence_errors + result.gaps,
					 0);
			assert_int_equal(result.depth_errors, 0);
			assert_int_equal(result.events, result.summary.events);
			assert_int_equal(result.summary.live_events > 0, !end);
			assert_int_equal(result.summary.threads, 1);
			assert_int_equal(result.summary.truncated, false);
			assert_int_equal(result.summary.file_bytes > 0, true);
			assert_int_equal(result.record_types[TRACE_RECORD_THREAD], 1);
			assert_int_equal(result.header.ended,
					 end ? TRACE_END_EXIT : TRACE_END_NONE);
			assert_int_equal(result.header.stopped, TRACE_STOP_NONE);
			assert_true(result.unit_ns > 0.01 && result.unit_ns < 1000);
			if (!end) {
				trace_buffer_release(buffer);
				trace_file_end(file, TRACE_END_EXIT);
			}
		}
		file_free(file);
		unlink(path);
	}
	temp_remove(path);
}

/* Blocks are compressed, whatever their size: the compressor has the memory that it needs. */
static void test_compressed(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	size_t length;

	(void)state;
	for (uint64_t i = 0; i < 200000; i++)
		put_pair(buffer, i);
	for (unsigned size = 1; size < 200; size++) {
		trace_buffer_release(buffer);
		buffer = trace_buffer_acquire(file, 0);
		for (uint64_t i = 0; i < size * 50u; i++)
			put_pair(buffer, i);
	}
	trace_buffer_release(buffer);
	uint8_t *bytes = slurp(path, &length);
	struct trace_frame frame;
	unsigned compressed = 0;
	for (size_t at = file->header->header_bytes; at < length; at += frame.bytes) {
		memcpy(&frame, bytes + at, sizeof(frame));
		assert_int_equal(frame.sync, TRACE_FRAME_SYNC);
		if (frame.type == TRACE_FRAME_EVENTS) {
			assert_int_equal(frame.codec, TRACE_CODEC_ZSTD);
			compressed++;
		}
	}
	assert_true(compressed > 200);
	free(bytes);
	file_free(file);
	temp_remove(path);
}

#define PLAYERS 8

struct player {
	struct trace_file *file;
	uint64_t pairs, number;
};

static void *play(void *context)
{
	struct player *player = context;
	struct trace_buffer *buffer = trace_buffer_acquire(player->file, 0);

	assert_non_null(buffer);
	player->number = buffer->thread;
	for (uint64_t i = 0; i < player->pairs; i++)
		put_pair(buffer, i);
	trace_buffer_release(buffer);
	return NULL;
}

/* Threads at the same time, and one after the other in the same slots. */
static void test_threads(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct player players[3][PLAYERS];
	struct read_result result;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		pthread_t threads[PLAYERS];

		for (unsigned i = 0; i < PLAYERS; i++) {
			players[round][i] = (struct player){ file, 1 + i * 9000 + round, 0 };
			pthread_create(&threads[i], NULL, play, &players[round][i]);
		}
		for (unsigned i = 0; i < PLAYERS; i++)
			pthread_join(threads[i], NULL);
	}
	assert_true(file->slot_count <= PLAYERS);
	assert_true(read_all(path, &result));
	assert_int_equal(result.summary.threads, 3 * PLAYERS);
	assert_int_equal(result.record_types[TRACE_RECORD_THREAD], 3 * PLAYERS);
	assert_int_equal(result.order_errors + result.sequence_errors + result.gaps, 0);
	assert_int_equal(result.summary.truncated, false);
	assert_int_equal(result.summary.live_events, 0);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < PLAYERS; i++)
			assert_int_equal(result.pairs[players[round][i].number],
					 players[round][i].pairs);
	file_free(file);
	temp_remove(path);
}

/* Field `f` of event `i`: of all lengths that a varint can have. */
static uint64_t field_value(unsigned i, unsigned f)
{
	static const uint64_t values[] = { 0,          1,
					   127,        128,
					   16383,      16384,
					   2097151,    2097152,
					   1u << 31,   UINT32_MAX,
					   1ull << 35, (1ull << 42) - 1,
					   1ull << 49, (1ull << 56) - 1,
					   1ull << 56, UINT64_MAX };
	uint64_t value = values[(i * 7 + f * 5 + i / 16) % 16];

	return f ? value : value >> TRACE_CODE_BITS; /* the first shares a varint with the code */
}

/* The next event that is not tare's own. */
static const struct trace_event *next_event(struct trace_reader *reader, struct trace_batch *batch,
					    uint32_t *at)
{
	bool own = false;

	for (;;) {
		if (*at == batch->count) {
			if (!trace_next_batch(reader, batch))
				return NULL;
			*at = 0;
		}
		const struct trace_event *event = &batch->events[(*at)++];
		bool was_own = own;

		own = event->code == TRACE_TARE;
		if (!own && !was_own)
			return event;
	}
}

/* Each event of the schema, with fields of every length, across many block ends. */
static void test_all_events(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	uint64_t start = buffer->last_time, now = start;
	struct trace_batch batch = { 0 };
	uint32_t at = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		unsigned code = i % TRACE_EVENT_CODES;
		uint64_t fields[TRACE_FIELDS_MAX];

		for (unsigned f = 0; f < TRACE_FIELDS_MAX; f++)
			fields[f] = field_value(i, f);
		now += field_value(i, 1) & 0xffffffffff;
		if (!trace_event_descs[code].name || code == TRACE_TARE)
			continue;
		/* The flush takes its own time from the clock: that is before ours. */
		if (trace_put_event(buffer, now, code, fields, trace_event_descs[code].field_count))
			trace_buffer_flush(buffer);
	}
	trace_buffer_release(buffer);

	struct trace_reader *reader = trace_open(path, NULL, (char[256]){ 0 }, 256);
	assert_non_null(reader);
	now = start;
	for (unsigned i = 0; i < 100000; i++) {
		unsigned code = i % TRACE_EVENT_CODES;

		now += field_value(i, 1) & 0xffffffffff;
		if (!trace_event_descs[code].name || code == TRACE_TARE)
			continue;
		const struct trace_event *event = next_event(reader, &batch, &at);
		assert_non_null(event);
		assert_int_equal(event->code, code);
		assert_true(event->time == now);
		assert_int_equal(event->field_count, trace_event_descs[code].field_count);
		for (unsigned f = 0; f < event->field_count; f++)
			assert_true(event->fields[f] == field_value(i, f));
	}
	assert_null(next_event(reader, &batch, &at));
	assert_true(trace_get_summary(reader)->frames > 10);
	assert_false(trace_get_summary(reader)->truncated);
	trace_close(reader);
	file_free(file);
	temp_remove(path);
}

static void test_backwards(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	struct read_result result;
	uint64_t now = trace_now(file) + 1000;

	(void)state;
	trace_put(buffer, now, DEVICE, 1);
	trace_put(buffer, now - 500, DEVICE, 2);
	trace_put(buffer, now + 5, DEVICE, 3);
	assert_true(read_all(path, &result));
	assert_int_equal(result.events, 3);
	assert_int_equal(result.order_errors, 0);
	assert_int_equal(result.header.negative_steps, 1);
	trace_buffer_release(buffer);
	file_free(file);
	temp_remove(path);
}

/* Leaves that are not the innermost's, and the depth that each block starts with. */
static void test_depth(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 3);
	struct trace_batch batch;

	(void)state;
	trace_leave(buffer, trace_now(file), 2, 0); /* opened before the trace */
	assert_int_equal(buffer->depth, 2);
	for (int i = 0; i < 4; i++)
		trace_enter(buffer, trace_now(file), SECTION, 0);
	trace_leave(buffer, trace_now(file), 2, 0);
	trace_leave(buffer, trace_now(file), 5, 0); /* was left already: nothing */
	assert_int_equal(buffer->depth, 2);
	trace_enter(buffer, trace_now(file), SECTION, 0);
	trace_buffer_flush(buffer);
	trace_buffer_release(buffer);

	struct trace_reader *reader = trace_open(path, NULL, (char[256]){ 0 }, 256);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.depth, 3);
	assert_true(batch.block_start && !batch.gap);
	assert_int_equal(batch.count, 7);
	assert_int_equal(batch.events[0].code, TRACE_LEAVE);
	assert_int_equal(batch.events[5].code, TRACE_LEAVE_TO);
	assert_int_equal(batch.events[5].fields[0], 2);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.depth, 3);
	assert_int_equal(batch.count, 2);
	assert_int_equal(batch.events[0].code, TRACE_TARE);
	assert_false(trace_next_batch(reader, &batch));
	trace_close(reader);
	file_free(file);
	temp_remove(path);
}

struct seen_records {
	uint64_t strings, large, total;
};

static int see_record(void *context, unsigned type, const union trace_record *record,
		      const uint8_t *bytes, size_t length)
{
	struct seen_records *seen = context;

	(void)bytes;
	seen->total++;
	if (type != TRACE_RECORD_STRING)
		return 0;
	assert_int_equal(record->STRING.string, seen->strings);
	seen->strings++;
	seen->large += length > TRACE_DEFS_ROOM;
	for (uint32_t i = 0; i < record->STRING.text.length; i++)
		if (record->STRING.text.data[i] != (char)(record->STRING.string + i * 31))
			fail();
	return 0;
}

/* Definitions of every size, in order: in live blocks, frames, and frames of their own. */
static void test_definitions(void **state)
{
	static const uint32_t sizes[] = { 0,     1,     100,   5000,     30000, 65516, 65520, 65521,
					  65524, 65536, 70000, 2u << 20, 3,     65520, 65520 };
	const unsigned rounds = 4, count = sizeof(sizes) / sizeof(*sizes);
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	char *text = malloc(TRACE_RECORD_BYTES_MAX);
	struct seen_records seen;

	(void)state;
	for (unsigned n = 0; n < rounds * count; n++) {
		uint32_t size = sizes[n % count];

		for (uint32_t i = 0; i < size; i++)
			text[i] = (char)(n + i * 31);
		errno = 5;
		assert_true(trace_define(buffer, TRACE_RECORD_STRING,
					 &(struct record_STRING){ n, { text, size } }));
		assert_int_equal(errno, 5);
		struct trace_reader *reader = trace_open(path, NULL, (char[256]){ 0 }, 256);
		assert_non_null(reader);
		seen = (struct seen_records){ 0 };
		assert_int_equal(trace_each_record(reader, see_record, &seen), 0);
		assert_int_equal(seen.strings, n + 1);
		assert_false(trace_get_summary(reader)->truncated);
		trace_close(reader);
	}
	assert_true(seen.large >= 3 * rounds);
	/* One that is too long is refused and counted. */
	assert_false(trace_define(buffer, TRACE_RECORD_STRING,
				  &(struct record_STRING){ 0, { text, TRACE_RECORD_BYTES_MAX } }));
	assert_int_equal(file->header->lost_events, 1);
	trace_buffer_release(buffer);
	free(text);
	file_free(file);
	temp_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),  cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_threads),     cmocka_unit_test(test_all_events),
		cmocka_unit_test(test_backwards),   cmocka_unit_test(test_depth),
		cmocka_unit_test(test_definitions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
