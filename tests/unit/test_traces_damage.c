/* test_traces_damage.c: traces that are cut, flipped, forged, newer or older: read as far as it goes. */
#include "tests/unit/traces_util.h"

#include <zstd.h>

/* Under the sanitizers, which take their time, a part of all places. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 5
#else
#define STRIDE 1
#endif

/*
 * A small trace with everything in it: two threads, blocks in frames and live, definitions of both kinds.
 * `live`: as a killed process leaves it.
 */
static uint8_t *small_trace(const char *path, bool live, size_t *length_p)
{
	struct trace_file *file = file_create(path);
	struct trace_buffer *a = trace_buffer_acquire(file, 0), *b = trace_buffer_acquire(file, 0);
	char *text = calloc(1, TRACE_DEFS_ROOM);
	uint64_t i = 0;
	size_t length;

	for (int blocks = 0; blocks < 3; blocks++) {
		for (int n = 0; n < 20; n++, i++) {
			put_pair(a, i);
			put_pair(b, i);
		}
		trace_buffer_flush(a);
		trace_buffer_flush(b);
		/* Only one of them fits: each writes out the one before. */
		trace_define(a, TRACE_RECORD_STRING, &(struct record_STRING){ 1, { text, 65000 } });
		trace_define(a, TRACE_RECORD_STRING, &(struct record_STRING){ 2, { text, 600 } });
	}
	for (int n = 0; n < 5; n++, i++) {
		put_pair(a, i);
		put_pair(b, i);
	}
	if (!live) {
		trace_buffer_release(a);
		trace_buffer_release(b);
		trace_file_end(file, TRACE_END_EXIT);
	}
	uint8_t *whole = slurp(path, &length);
	uint8_t *small = compact(whole, length, length_p);
	free(whole);
	free(text);
	file_free(file);
	spew(path, small, *length_p);
	return small;
}

/* What two traces of the same program have in common. */
static void check_prefix(const struct read_result *part, const struct read_result *whole)
{
	assert_int_equal(part->order_errors, 0);
	assert_int_equal(part->sequence_errors, 0);
	assert_true(part->events <= whole->events);
	for (unsigned t = 0; t < READ_THREADS; t++) {
		assert_true(part->first_pair[t] == UINT64_MAX || part->gaps ||
			    part->first_pair[t] == 0);
		assert_true(part->pairs[t] <= whole->pairs[t]);
	}
}

static void test_every_cut(void **state)
{
	char *path = temp_path();
	struct read_result whole, part;
	size_t length;

	(void)state;
	for (int live = 0; live < 2; live++) {
		uint8_t *bytes = small_trace(path, live, &length);

		assert_true(read_all(path, &whole));
		assert_false(whole.summary.truncated);
		assert_int_equal(whole.pairs[1], 65);
		assert_int_equal(whole.pairs[2], 65);
		uint64_t fewest = whole.events;
		for (size_t cut = length; cut >= STRIDE;) {
			cut -= STRIDE;
			assert_int_equal(truncate(path, (off_t)cut), 0);
			if (!read_all(path, &part)) {
				assert_true(cut < 2 * TRACE_PAGE);
				continue;
			}
			assert_true(cut >= 2 * TRACE_PAGE);
			check_prefix(&part, &whole);
			/* The shorter the file, the less is in it. */
			assert_true(part.events <= fewest);
			fewest = part.events;
			assert_int_equal(part.summary.file_bytes, cut);
		}
		assert_int_equal(fewest, 0);
		unlink(path);
		free(bytes);
	}
	temp_remove(path);
}

/* Whether a checksum covers the byte at `at`. */
static bool is_checked(const uint8_t *bytes, size_t length, size_t at)
{
	struct trace_header header;
	struct trace_frame frame;

	memcpy(&header, bytes, sizeof(header));
	if (at < TRACE_PAGE)
		return at < offsetof(struct trace_header, reserved);
	if (at < header.header_bytes)
		return at < TRACE_PAGE + header.descriptor_bytes;
	for (size_t start = header.header_bytes; start < length; start += frame.bytes) {
		memcpy(&frame, bytes + start, sizeof(frame));
		if (at < start + frame.bytes)
			return frame.type != TRACE_FRAME_LIVE || at < start + sizeof(frame);
	}
	return false;
}

static void test_every_flip(void **state)
{
	char *path = temp_path();
	struct read_result whole, part;
	size_t length;
	uint8_t *bytes = small_trace(path, true, &length);
	int fd = open(path, O_WRONLY);

	(void)state;
	assert_true(read_all(path, &whole));
	for (size_t at = 0; at < length; at += STRIDE) {
		uint8_t flipped = bytes[at] ^ (uint8_t)(1u << at % 8);

		assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
		bool opened = read_all(path, &part);
		assert_int_equal(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
		if (!is_checked(bytes, length, at)) {
			assert_true(opened);
			continue;
		}
		if (!opened)
			assert_true(at < TRACE_PAGE);
		else if (part.hash != whole.hash || part.events != whole.events)
			assert_true(part.summary.truncated);
		else
			assert_true(part.summary.truncated || at < 2 * TRACE_PAGE);
	}
	close(fd);
	free(bytes);
	temp_remove(path);
}

/* Several bytes at once, a piece taken out, a piece put in twice: at random places. */
static void test_random_damage(void **state)
{
	char *path = temp_path();
	struct read_result whole, part;
	size_t length;
	uint8_t *bytes = small_trace(path, true, &length), *changed = malloc(2 * length);
	uint64_t random = 0x9e3779b97f4a7c15u;

	(void)state;
	assert_true(read_all(path, &whole));
	for (int round = 0; round < 1000 / STRIDE; round++) {
		size_t at[2];

		for (int i = 0; i < 2; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			at[i] = TRACE_PAGE + (random >> 20) % (length - TRACE_PAGE);
		}
		size_t from = at[0] < at[1] ? at[0] : at[1], to = at[0] < at[1] ? at[1] : at[0];
		size_t total = length;
		memcpy(changed, bytes, length);
		switch (round % 3) {
		case 0:
			for (size_t i = from; i < to; i++)
				changed[i] ^= (uint8_t)(random >> i % 40);
			break;
		case 1:
			memcpy(changed + from, bytes + to, length - to);
			total -= to - from;
			break;
		case 2:
			memcpy(changed + to, bytes + from, length - from);
			total += to - from;
			break;
		}
		spew(path, changed, total);
		if (read_all(path, &part))
			assert_int_equal(part.order_errors, 0);
	}
	free(changed);
	free(bytes);
	temp_remove(path);
}

/* Killed after the frame was written and before the live block was emptied. */
static void test_duplicates(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	uint8_t *saved = malloc(TRACE_SLOT_BYTES);
	char *text = calloc(1, TRACE_DEFS_ROOM);
	struct read_result result;
	uint64_t i = 0;

	(void)state;
	for (; i < 1000; i++)
		put_pair(buffer, i);
	memcpy(saved, buffer->mapping, TRACE_SLOT_BYTES);
	trace_buffer_flush(buffer);
	memcpy(buffer->mapping, saved, TRACE_SLOT_BYTES);
	assert_true(read_all(path, &result));
	assert_int_equal(result.summary.duplicate_blocks, 1);
	assert_int_equal(result.events, 2000);
	assert_int_equal(result.sequence_errors + result.gaps, 0);
	assert_false(result.summary.truncated);
	file_free(file);
	unlink(path);

	file = file_create(path);
	buffer = trace_buffer_acquire(file, 0);
	trace_define(buffer, TRACE_RECORD_STRING, &(struct record_STRING){ 1, { text, 40000 } });
	memcpy(saved, buffer->mapping, TRACE_SLOT_BYTES);
	trace_define(buffer, TRACE_RECORD_STRING, &(struct record_STRING){ 2, { text, 40000 } });
	memcpy(buffer->mapping, saved, TRACE_SLOT_BYTES);
	assert_true(read_all(path, &result));
	assert_int_equal(result.summary.duplicate_blocks, 1);
	assert_int_equal(result.record_types[TRACE_RECORD_STRING], 1);
	assert_int_equal(result.record_types[TRACE_RECORD_THREAD], 1);
	file_free(file);
	free(saved);
	free(text);
	temp_remove(path);
}

/* ---------------------------------------------------------------- forged traces */

struct forged {
	uint8_t bytes[4u << 20];
	size_t length;
};

/* A header with the given descriptor text, or the usual one. */
static struct forged *forge(const char *descriptor)
{
	struct forged *forged = calloc(1, sizeof(*forged));
	char text[TRACE_PAGE * 2];
	size_t length = descriptor ? strlen(descriptor) : trace_descriptor_text(text, sizeof(text));
	struct trace_header header = {
		.magic = TRACE_MAGIC,
		.version = TRACE_VERSION,
		.header_bytes = 3 * TRACE_PAGE,
		.descriptor_bytes = (uint32_t)length,
		.descriptor_crc = crc32c(0, descriptor ? descriptor : text, length),
		.clock = TRACE_CLOCK_MONOTONIC,
		.open = { 100, 100 },
	};

	header.crc = crc32c(0, &header, offsetof(struct trace_header, crc));
	memcpy(forged->bytes, &header, sizeof(header));
	memcpy(forged->bytes + TRACE_PAGE, descriptor ? descriptor : text, length);
	forged->length = header.header_bytes;
	return forged;
}

static void forge_frame(struct forged *forged, struct trace_frame frame, const void *payload,
			size_t payload_bytes)
{
	frame.sync = TRACE_FRAME_SYNC;
	if (!frame.bytes)
		frame.bytes = (uint32_t)(sizeof(frame) + payload_bytes);
	frame.crc = 0;
	frame.crc = crc32c(crc32c(0, &frame, sizeof(frame)), payload, payload_bytes);
	memcpy(forged->bytes + forged->length, &frame, sizeof(frame));
	memcpy(forged->bytes + forged->length + sizeof(frame), payload, payload_bytes);
	forged->length += sizeof(frame) + payload_bytes;
}

/* One block of uncompressed events: `count` varints of time, then the ids as they are. */
static void forge_events(struct forged *forged, uint32_t thread, uint64_t block,
			 uint64_t first_time, const uint64_t *steps, unsigned count,
			 const uint64_t *ids, unsigned id_count)
{
	uint8_t payload[4096], *end = payload;

	for (unsigned i = 0; i < count; i++)
		end = put_varint(end, steps[i]);
	uint32_t times = (uint32_t)(end - payload);
	for (unsigned i = 0; i < id_count; i++)
		end = put_varint(end, ids[i]);
	forge_frame(forged,
		    (struct trace_frame){ .type = TRACE_FRAME_EVENTS,
					  .thread = thread,
					  .block = block,
					  .first_time = first_time,
					  .events = count,
					  .times_bytes = times,
					  .times_packed = times,
					  .ids_bytes = (uint32_t)(end - payload) - times },
		    payload, (size_t)(end - payload));
}

static struct trace_reader *forged_open(struct forged *forged, const char *path)
{
	char message[256];

	spew(path, forged->bytes, forged->length);
	free(forged);
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	assert_non_null(reader);
	return reader;
}

#define ID(code, field) ((uint64_t)(field) << TRACE_CODE_BITS | (code))

/* A later version has more events, more fields and more records: they are read, or skipped. */
static void test_later_version(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge("event 0 LEAVE leave result extra\n"
				      "event 2 FRAME span code site how a b c d e f g\n"
				      "event 30 NOVEL span x y\n"
				      "nonsense 1 2 3\n"
				      "event 77 TOO_HIGH mark x\n"
				      "event 4 NO_FIELDS mark\n"
				      "event 5 WRONG_KIND kind x\n"
				      "event 7 B\x1b[31mAD mark x\n"
				      "record 60 NOVEL number:u32\n");
	const uint64_t steps[] = { 1, 1, 1, 1 };
	const uint64_t ids[] = { ID(2, 7),     8,    9,        10, 11,       12, 13, 14, 15, 16,
				 ID(30, 1000), 1001, ID(0, 3), 4,  ID(0, 5), 6 };
	struct record_STRING string = { 9, str("after the unknown") };
	uint8_t records[256] = {
		12, 0, 0, 0, 60, 0, 0, 0, 1, 2, 3, 4, 8, 0, 0, 0, 0xff, 0xff, 0, 0
	};
	size_t record_bytes = 20 + trace_record_bytes(TRACE_RECORD_STRING, &string);
	struct trace_batch batch;
	struct read_result counted = { 0 };

	(void)state;
	trace_record_encode(TRACE_RECORD_STRING, &string, records + 20);
	forge_frame(forged, (struct trace_frame){ .type = 99 }, "whatever", 8);
	forge_events(forged, 1, 0, 1000, steps, 4, ids, 16);
	forge_frame(forged,
		    (struct trace_frame){ .type = TRACE_FRAME_DEFS,
					  .ids_bytes = (uint32_t)record_bytes },
		    records, record_bytes);
	struct trace_reader *reader = forged_open(forged, path);
	const struct trace_event_desc *novel = trace_event_described(reader, 30);
	assert_string_equal(novel->name, "NOVEL");
	assert_int_equal(novel->kind, TRACE_KIND_SPAN);
	assert_int_equal(novel->field_count, 2);
	for (unsigned code = 0; code < 100; code++)
		assert_int_equal(trace_event_described(reader, code) != NULL,
				 code == 0 || code == 2 || code == 30);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.count, 4);
	assert_int_equal(batch.events[0].field_count, TRACE_FIELDS_MAX);
	assert_int_equal(batch.events[0].fields[7], 14);
	assert_int_equal(batch.events[1].code, 30);
	assert_int_equal(batch.events[1].fields[1], 1001);
	assert_int_equal(batch.events[3].fields[1], 6);
	assert_int_equal(batch.events[3].time, 1004);
	trace_each_record(reader, count_record, &counted);
	assert_int_equal(counted.records, 3);
	assert_int_equal(counted.record_types[0], 2);
	assert_int_equal(counted.record_types[TRACE_RECORD_STRING], 1);
	assert_int_equal(trace_get_summary(reader)->unknown_records, 2);
	assert_false(trace_get_summary(reader)->truncated);
	trace_close(reader);
	temp_remove(path);
}

/* What an earlier version did not write reads as 0. */
static void test_earlier_version(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge("event 0 LEAVE leave result\nevent 2 FRAME span code\n");
	const uint64_t steps[] = { 5, 5, 5, 5 };
	const uint64_t ids[] = { ID(2, 7), ID(0, 0), ID(2, 8), ID(0, 1) };
	struct trace_batch batch;

	(void)state;
	forge_events(forged, 1, 0, 0, steps, 4, ids, 4);
	struct trace_reader *reader = forged_open(forged, path);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.count, 4);
	assert_int_equal(batch.events[2].field_count, 1);
	assert_int_equal(batch.events[2].fields[0], 8);
	assert_int_equal(batch.events[2].fields[1], 0);
	assert_int_equal(batch.events[2].fields[2], 0);
	trace_close(reader);
	temp_remove(path);
}

/* An event that the file does not describe ends its block; the next has a gap. */
static void test_unknown_event(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	const uint64_t steps[] = { 1, 1, 1 };
	const uint64_t bad[] = { ID(22, 1), ID(31, 1), ID(22, 2) },
		       good[] = { ID(22, 3), ID(22, 4), ID(22, 5) };
	struct trace_batch batch;

	(void)state;
	forge_events(forged, 1, 0, 0, steps, 3, bad, 3);
	forge_events(forged, 1, 1, 100, steps, 3, good, 3);
	struct trace_reader *reader = forged_open(forged, path);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.count, 1);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.count, 3);
	assert_true(batch.gap && batch.block_start);
	assert_false(trace_next_batch(reader, &batch));
	assert_int_equal(trace_get_summary(reader)->unknown_events, 1);
	assert_int_equal(trace_get_summary(reader)->damaged_frames, 0);
	assert_true(trace_get_summary(reader)->truncated);
	trace_close(reader);
	temp_remove(path);
}

/* A damaged description: what this version knows is used, and the damage is told. */
static void test_bad_descriptor(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	const uint64_t steps[] = { 1 }, ids[] = { ID(22, 1) };
	struct trace_batch batch;

	(void)state;
	forge_events(forged, 1, 0, 0, steps, 1, ids, 1);
	forged->bytes[TRACE_PAGE + 6] ^= 1;
	struct trace_reader *reader = forged_open(forged, path);
	assert_true(trace_next_batch(reader, &batch));
	assert_true(trace_get_summary(reader)->truncated);
	assert_int_equal(trace_get_descriptor(reader).length, 0);
	trace_close(reader);
	temp_remove(path);
}

/* Frames whose checksum is right and whose contents are not. */
static void test_lies(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	static uint8_t zeros[3u << 20], packed[1u << 16];
	const uint64_t steps[] = { 1, UINT64_MAX, 1 }, ids[] = { ID(22, 1), ID(22, 2), ID(22, 3) };
	struct trace_batch batch;
	uint32_t thread = 1;

	(void)state;
	size_t bomb = ZSTD_compress(packed, sizeof(packed), zeros, sizeof(zeros), 1);
	assert_false(ZSTD_isError(bomb));
	/* A time that wraps around; events that are not there; more of them than are told. */
	forge_events(forged, thread++, 0, 10, steps, 3, ids, 3);
	struct trace_frame lie = { .type = TRACE_FRAME_EVENTS,
				   .times_packed = 1,
				   .times_bytes = 1 };
	lie.thread = thread++, lie.events = 1000, lie.ids_bytes = 1;
	forge_frame(forged, lie, "\1\7", 2);
	lie.thread = thread++, lie.events = 1, lie.ids_bytes = 2;
	forge_frame(forged, lie, "\1\x36\x36", 3);
	/* Sizes: not those of the payload, too large, a codec of the future, a bomb. */
	lie.thread = thread++, lie.ids_bytes = 500;
	forge_frame(forged, lie, "\1\x36\x36", 3);
	lie.thread = thread++, lie.codec = 9, lie.ids_bytes = 2;
	forge_frame(forged, lie, "\1\x36\x36", 3);
	lie.thread = thread++, lie.codec = TRACE_CODEC_ZSTD, lie.times_packed = (uint32_t)bomb;
	lie.times_bytes = 1u << 20;
	forge_frame(forged, lie, packed, bomb);
	lie.thread = thread++, lie.times_bytes = 3u << 20;
	forge_frame(forged, lie, packed, bomb);
	lie.thread = thread++, lie.times_packed = 5000, lie.times_bytes = 1;
	forge_frame(forged, lie, packed, 20);
	/* The same for definitions. */
	lie = (struct trace_frame){ .type = TRACE_FRAME_DEFS,
				    .ids_bytes = TRACE_RECORD_BYTES_MAX + 1 };
	forge_frame(forged, lie, packed, 20);
	lie.block++, lie.ids_bytes = 16;
	forge_frame(forged, lie, "\xff\xff\xff\xff\1\0\0\0........", 16);
	lie.block++;
	forge_frame(forged, lie, "\x10\0\0\0\1\0\0\0\xff\xff\xff\xff....", 16);
	lie.block++;
	forge_frame(forged, lie, "\4\0\0\0\1\0\0\0........", 16);
	/* And then one that is right. */
	const uint64_t right[] = { 1, 1, 1 };
	forge_events(forged, 50, 0, 1u << 20, right, 3, ids, 3);
	struct trace_reader *reader = forged_open(forged, path);
	uint64_t events = 0, last = 0;
	while (trace_next_batch(reader, &batch)) {
		events += batch.count;
		assert_true(batch.events[0].time >= last);
		last = batch.events[batch.count - 1].time;
		if (batch.thread == 50)
			assert_int_equal(batch.count, 3);
	}
	/* One of the first, one each of the second and third, three of the last. */
	assert_int_equal(events, 6);
	/* Three that follow each other cannot be frames at all: they count as one. */
	assert_int_equal(trace_get_summary(reader)->damaged_frames, 10);
	assert_true(trace_get_summary(reader)->truncated);
	trace_close(reader);
	temp_remove(path);
}

/* Blocks out of order in the file, missing, and there twice. */
static void test_block_numbers(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	const uint64_t steps[] = { 1, 1 };
	const uint64_t numbers[] = { 3, 0, 1, 7, 1, UINT64_MAX };
	struct trace_batch batch;
	uint64_t expected[] = { 0, 1, 3, 7, UINT64_MAX };
	bool gaps[] = { false, false, true, true, true };

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		const uint64_t ids[] = { ID(22, numbers[i] & 0xff), ID(22, 0) };

		forge_events(forged, 4, numbers[i], 1000 * (numbers[i] & 0xff), steps, 2, ids, 2);
	}
	struct trace_reader *reader = forged_open(forged, path);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(trace_next_batch(reader, &batch));
		assert_true(batch.block == expected[i] && batch.block_start);
		assert_int_equal(batch.gap, gaps[i]);
		assert_int_equal(batch.count, 2);
		assert_int_equal(batch.events[0].fields[0], expected[i] & 0xff);
	}
	assert_false(trace_next_batch(reader, &batch));
	assert_int_equal(trace_get_summary(reader)->duplicate_blocks, 1);
	trace_close(reader);
	temp_remove(path);
}

/* Many threads: by time, and of one time by number. */
static void test_merge(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	struct trace_batch batch;
	uint64_t last = 0, count = 0;
	uint32_t last_thread = 0;

	(void)state;
	for (uint64_t block = 0; block < 5; block++)
		for (uint32_t thread = 200; thread > 0; thread--) {
			uint64_t steps[40], ids[40];

			for (unsigned i = 0; i < 40; i++) {
				steps[i] = (thread * 7 + i * 13 + block) % 5;
				ids[i] = ID(22, block * 40 + i);
			}
			/* Threads 101 on begin when others have ended. */
			forge_events(forged, thread, block, block * 200 + (thread > 100) * 1200,
				     steps, 40, ids, 40);
		}
	uint64_t next[201] = { 0 };
	struct trace_reader *reader = forged_open(forged, path);
	while (trace_next_batch(reader, &batch))
		for (uint32_t i = 0; i < batch.count; i++, count++) {
			const struct trace_event *event = &batch.events[i];

			assert_true(event->time > last ||
				    (event->time == last && batch.thread >= last_thread));
			assert_int_equal(event->fields[0], next[batch.thread]++);
			last = event->time;
			last_thread = batch.thread;
		}
	assert_int_equal(count, 200 * 5 * 40);
	trace_close(reader);
	temp_remove(path);
}

/* Sync words where none belong: found again behind them, in time that grows with the file alone. */
static void test_false_syncs(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	const uint64_t steps[] = { 1 }, ids[] = { ID(22, 1) };
	struct trace_batch batch;

	(void)state;
	forge_events(forged, 1, 0, 0, steps, 1, ids, 1);
	for (size_t i = 0; i < 500000; i += 4, forged->length += 4)
		put_u32(forged->bytes + forged->length, TRACE_FRAME_SYNC);
	forge_events(forged, 1, 1, 10, steps, 1, ids, 1);
	struct trace_reader *reader = forged_open(forged, path);
	assert_true(trace_next_batch(reader, &batch));
	assert_true(trace_next_batch(reader, &batch));
	assert_false(trace_next_batch(reader, &batch));
	assert_int_equal(trace_get_summary(reader)->skipped_bytes, 500000);
	trace_close(reader);
	temp_remove(path);
}

/* As many false frames as fit, each of which claims all the rest: given up, and not summed up forever. */
static void test_false_frames(void **state)
{
	char *path = temp_path();
	struct forged *forged = forge(NULL);
	const uint64_t steps[] = { 1 }, ids[] = { ID(22, 1) };
	struct trace_batch batch;

	(void)state;
	forge_events(forged, 1, 0, 0, steps, 1, ids, 1);
	const size_t end = sizeof(forged->bytes) - sizeof(struct trace_frame);
	for (; forged->length < end; forged->length += sizeof(struct trace_frame)) {
		struct trace_frame frame = { .sync = TRACE_FRAME_SYNC, .type = 77 };

		frame.bytes = (uint32_t)(end - forged->length);
		memcpy(forged->bytes + forged->length, &frame, sizeof(frame));
	}
	size_t length = forged->length;
	struct trace_reader *reader = forged_open(forged, path);
	assert_true(trace_next_batch(reader, &batch));
	assert_int_equal(batch.count, 1);
	assert_false(trace_next_batch(reader, &batch));
	assert_true(trace_get_summary(reader)->truncated);
	assert_int_equal(trace_get_summary(reader)->file_bytes, length);
	trace_close(reader);
	temp_remove(path);
}

static void check_error(const char *path, enum trace_open_error expected, const char *words)
{
	char message[256] = "";
	enum trace_open_error error;

	assert_null(trace_open(path, &error, message, sizeof(message)));
	assert_int_equal(error, expected);
	assert_non_null(strstr(message, words));
	assert_null(strchr(message, '\n'));
}

static void test_open_errors(void **state)
{
	char *path = temp_path();
	size_t length;
	uint8_t *bytes = small_trace(path, true, &length);

	(void)state;
	put_u32(bytes + offsetof(struct trace_header, version), 2);
	spew(path, bytes, length);
	check_error(path, TRACE_OPEN_NEWER, "format 2");
	spew(path, bytes, 12);
	check_error(path, TRACE_OPEN_NEWER, "newer");
	put_u32(bytes + offsetof(struct trace_header, version), 0);
	spew(path, bytes, length);
	check_error(path, TRACE_OPEN_DAMAGED, "header");
	spew(path, bytes, 5);
	check_error(path, TRACE_OPEN_DAMAGED, "header");
	spew(path, bytes, 0);
	check_error(path, TRACE_OPEN_EMPTY, "empty");
	spew(path, (const uint8_t *)"hello\n", 6);
	check_error(path, TRACE_OPEN_NOT_A_TRACE, "not a tare trace");
	check_error("/dev/null", TRACE_OPEN_NOT_A_TRACE, "not a tare trace");
	check_error("/tmp", TRACE_OPEN_SYSTEM, "directory");
	check_error("/nonexistent.tare", TRACE_OPEN_SYSTEM, "No such file");
	trace_close(NULL);
	free(bytes);
	temp_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_cut),     cmocka_unit_test(test_every_flip),
		cmocka_unit_test(test_random_damage), cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_later_version), cmocka_unit_test(test_earlier_version),
		cmocka_unit_test(test_unknown_event), cmocka_unit_test(test_bad_descriptor),
		cmocka_unit_test(test_lies),          cmocka_unit_test(test_block_numbers),
		cmocka_unit_test(test_merge),         cmocka_unit_test(test_false_syncs),
		cmocka_unit_test(test_false_frames),  cmocka_unit_test(test_open_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
