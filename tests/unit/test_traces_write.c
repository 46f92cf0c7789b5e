/* test_traces_write.c: what the writer writes, the reader reads; and what ends the writing. */
#include "tests/unit/traces_util.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
		trace_put_event(buffer, now, code, fields, trace_event_descs[code].field_count);
		trace_after_put(buffer);
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

/* ---------------------------------------------------------------- what ends the writing */

/* Writes until the file stops, and a little on. Returns how many pairs before that. */
static uint64_t write_until_stopped(struct trace_file *file, struct trace_buffer *buffer)
{
	uint64_t i = 0;

	while (!buffer->stopped && i < 20000000)
		put_pair(buffer, i++);
	assert_true(buffer->stopped && trace_file_stopped(file));
	for (int more = 0; more < 100000; more++)
		put_pair(buffer, i + 1000);
	assert_false(
		trace_define(buffer, TRACE_RECORD_STRING, &(struct record_STRING){ 1, str("x") }));
	assert_null(trace_buffer_acquire(file, 0));
	return i;
}

static void check_stopped(const char *path, uint64_t pairs, enum trace_stop reason, int error)
{
	struct read_result result;

	assert_true(read_all(path, &result));
	assert_int_equal(result.header.stopped, reason);
	assert_int_equal(result.header.stop_errno, error);
	assert_true(result.header.end.units > 0);
	/* What was put before the stop is all there. */
	assert_int_equal(result.pairs[1], pairs);
	assert_int_equal(result.sequence_errors + result.gaps, 0);
}

static void test_max_bytes(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct read_result result;
	struct stat status;

	(void)state;
	file->max_bytes = 400000;
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	uint64_t pairs = write_until_stopped(file, buffer);
	assert_true(pairs > 50000);
	check_stopped(path, pairs, TRACE_STOP_MAX_BYTES, 0);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size <= 400000);
	trace_buffer_release(buffer);
	trace_file_end(file, TRACE_END_EXIT);
	assert_true(read_all(path, &result));
	assert_int_equal(result.pairs[1], pairs);
	assert_false(result.summary.truncated);
	file_free(file);
	temp_remove(path);
}

/* Runs `body` in a child, which shall end with 0. */
static void in_child(void (*body)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		body(path);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%d: %s\n", __LINE__, #condition);                         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void limit_body(const char *path)
{
	struct rlimit limit = { 1500000, 1500000 };
	struct trace_file *file;
	uint64_t i = 0;

	MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	MUST(buffer);
	while (!buffer->stopped && i < 20000000)
		put_pair(buffer, i++);
	MUST(file->header->stopped == TRACE_STOP_FILE_LIMIT);
}

/* Too little room even for the first block: no file, and the child lives. */
static void small_limit_body(const char *path)
{
	static struct trace_file file;

	for (rlim_t bytes = 0; bytes < 700000; bytes += 4099) {
		struct rlimit limit = { bytes, RLIM_INFINITY };
		struct trace_clock_pair load = trace_clock_start(&file);

		MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
		int error = trace_file_create(&file, path, load);
		MUST(!error || error == EFBIG);
		MUST(!!error == (access(path, F_OK) != 0));
		if (error)
			continue;
		file.max_bytes = UINT64_MAX;
		struct trace_buffer *buffer = trace_buffer_acquire(&file, 0);
		for (uint64_t i = 0; buffer && !buffer->stopped && i < 1000000; i++)
			put_pair(buffer, i);
		MUST(file.header->stopped == TRACE_STOP_FILE_LIMIT);
		trace_file_forget(&file);
		unlink(path);
	}
}

static void test_file_limit(void **state)
{
	char *path = temp_path();
	struct read_result result;

	(void)state;
	in_child(limit_body, path);
	assert_true(read_all(path, &result));
	assert_true(result.pairs[1] > 50000);
	assert_int_equal(result.gaps + result.sequence_errors, 0);
	assert_false(result.summary.truncated);
	unlink(path);
	in_child(small_limit_body, path);
	temp_remove(path);
}

static void test_file_gone(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);

	(void)state;
	unlink(path);
	write_until_stopped(file, buffer);
	assert_int_equal(file->header->stopped, TRACE_STOP_FILE_GONE);
	assert_int_equal(file->header->stop_errno, ENOENT);
	assert_int_equal(access(path, F_OK), -1);
	trace_buffer_release(buffer);
	file_free(file);

	/* Another file in its place is left alone. */
	file = file_create(path);
	buffer = trace_buffer_acquire(file, 0);
	unlink(path);
	spew(path, (const uint8_t *)"mine", 4);
	write_until_stopped(file, buffer);
	assert_int_equal(file->header->stopped, TRACE_STOP_FILE_GONE);
	size_t length;
	uint8_t *bytes = slurp(path, &length);
	assert_int_equal(length, 4);
	free(bytes);
	file_free(file);
	temp_remove(path);
}

static void test_not_created(void **state)
{
	static struct trace_file file;
	struct trace_clock_pair load = trace_clock_start(&file);
	char *path = temp_path();

	(void)state;
	spew(path, (const uint8_t *)"mine", 4);
	assert_int_equal(trace_file_create(&file, path, load), EEXIST);
	assert_int_equal(trace_file_create(&file, "/nonexistent/a.tare", load), ENOENT);
	assert_int_equal(trace_file_create(&file, "/proc/a.tare", load), ENOENT);
	char *long_path = malloc(PATH_MAX + 2);
	memset(long_path, '/', PATH_MAX + 1);
	long_path[PATH_MAX + 1] = 0;
	assert_int_equal(trace_file_create(&file, long_path, load), ENAMETOOLONG);
	free(long_path);
	size_t length;
	uint8_t *bytes = slurp(path, &length);
	assert_int_equal(length, 4);
	free(bytes);
	/* After all that it works. */
	unlink(path);
	assert_int_equal(trace_file_create(&file, path, load), 0);
	trace_file_forget(&file);
	temp_remove(path);
}

/* A full disk: /dev/full has no mapping, so a file system with little room is made, where that is allowed. */
static void full_disk_body(const char *path)
{
	char filler[65536] = { 0 }, folder[256], name[300];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	snprintf(name, sizeof(name), "%s/filler", folder);
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	MUST(buffer);
	uint64_t i = 0;
	for (; i < 30000; i++)
		put_pair(buffer, i);
	int fd = open(name, O_WRONLY | O_CREAT, 0666);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	while (write(fd, filler, 1) > 0)
		;
	MUST(errno == ENOSPC);
	while (!buffer->stopped && i < 20000000)
		put_pair(buffer, i++);
	MUST(file->header->stopped == TRACE_STOP_WRITE && file->header->stop_errno == ENOSPC);
	MUST(!trace_buffer_acquire(file, 0));
	struct read_result result;
	MUST(read_all(path, &result));
	MUST(result.pairs[1] == i && !result.gaps && !result.sequence_errors);
	/* With no room at all nothing stays behind. */
	static struct trace_file second;
	snprintf(name, sizeof(name), "%s/second.tare", folder);
	trace_clock_start(&second);
	MUST(trace_file_create(&second, name, trace_clock_pair(&second)) == ENOSPC);
	MUST(access(name, F_OK) != 0);
}

static void test_full_disk(void **state)
{
	char *path = temp_path();
	char command[512];

	(void)state;
	*strrchr(path, '/') = 0;
	snprintf(command, sizeof(command), "mount -t tmpfs -o size=600k none %s 2>/dev/null", path);
	if (system(command) != 0) {
		rmdir(path);
		free(path);
		skip();
	}
	path[strlen(path)] = '/';
	in_child(full_disk_body, path);
	*strrchr(path, '/') = 0;
	snprintf(command, sizeof(command), "umount %s", path);
	assert_int_equal(system(command), 0);
	rmdir(path);
	free(path);
}

/* Without a free descriptor blocks are lost, counted and told; later ones are written. */
static void no_descriptor_body(const char *path)
{
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	struct rlimit limit, none = { 0, 0 };
	uint64_t i = 0;

	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none.rlim_max = limit.rlim_max;
	for (; i < 100000; i++) {
		if (i == 40000)
			MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
		if (i == 60000)
			MUST(!trace_buffer_acquire(file, 0));
		if (i == 80000)
			MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		put_pair(buffer, i);
	}
	MUST(!trace_file_stopped(file));
	MUST(file->header->lost_events > 40000);
	trace_buffer_release(buffer);
	struct read_result result;
	MUST(read_all(path, &result));
	MUST(result.pairs[1] == 100000);
	MUST(result.gaps >= 1 && !result.sequence_errors && !result.depth_errors);
	MUST(result.record_types[TRACE_RECORD_LOST] == result.summary.missing_blocks);
	MUST(result.summary.events + file->header->lost_events ==
	     200000 + 2 * (result.summary.frames - 2 + result.summary.missing_blocks));
}

static void test_no_descriptor(void **state)
{
	char *path = temp_path();

	(void)state;
	in_child(no_descriptor_body, path);
	temp_remove(path);
}

/* More threads at once than there are slots: they get none, and nothing breaks. */
static void test_slots(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);

	(void)state;
	file->slot_count = TRACE_SLOTS_MAX - 1;
	struct trace_buffer *last = trace_buffer_acquire(file, 0);
	assert_non_null(last);
	assert_int_equal(last->slot, TRACE_SLOTS_MAX - 1);
	off_t size = lseek(open(path, O_RDONLY | O_CLOEXEC), 0, SEEK_END);
	assert_null(trace_buffer_acquire(file, 0));
	assert_null(trace_buffer_acquire(file, 0));
	assert_int_equal(lseek(open(path, O_RDONLY | O_CLOEXEC), 0, SEEK_END), size);
	put_pair(last, 0);
	trace_buffer_release(last);
	assert_ptr_equal(trace_buffer_acquire(file, 0), last);
	file_free(file);
	temp_remove(path);
}

/* A forked child forgets its parent's trace and makes one of its own. */
static void forget_body(const char *path)
{
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	char *own = temp_path();
	struct read_result result;

	for (uint64_t i = 0; i < 30000; i++)
		put_pair(buffer, i);
	pid_t pid = fork();
	if (!pid) {
		uint32_t depth = 2;

		trace_file_forget(file);
		trace_clock_start(file);
		MUST(trace_file_create(file, own, trace_clock_pair(file)) == 0);
		file->max_bytes = UINT64_MAX;
		buffer = trace_buffer_acquire(file, depth);
		for (uint64_t i = 0; i < 50000; i++)
			put_pair(buffer, i);
		_exit(0);
	}
	int status;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	for (uint64_t i = 30000; i < 60000; i++)
		put_pair(buffer, i);
	MUST(read_all(path, &result) && result.pairs[1] == 60000);
	MUST(!result.gaps && !result.sequence_errors && !result.summary.truncated);
	MUST(read_all(own, &result) && result.pairs[1] == 50000);
	MUST(!result.gaps && !result.sequence_errors && !result.summary.truncated);
	temp_remove(own);
}

static void test_fork(void **state)
{
	char *path = temp_path();

	(void)state;
	in_child(forget_body, path);
	temp_remove(path);
}

/* A thread that is to be cancelled is not cancelled by our system calls. */
static void *cancelled(void *context)
{
	struct trace_buffer *buffer = trace_buffer_acquire(context, 0);

	pthread_cancel(pthread_self());
	for (uint64_t i = 0; i < 200000; i++)
		put_pair(buffer, i);
	trace_buffer_release(buffer);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return context;
}

static void test_cancel(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	pthread_t thread;
	void *result;

	(void)state;
	pthread_create(&thread, NULL, cancelled, file);
	pthread_join(thread, &result);
	assert_ptr_equal(result, file);
	file_free(file);
	temp_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),    cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_threads),       cmocka_unit_test(test_all_events),
		cmocka_unit_test(test_backwards),     cmocka_unit_test(test_depth),
		cmocka_unit_test(test_definitions),   cmocka_unit_test(test_max_bytes),
		cmocka_unit_test(test_file_limit),    cmocka_unit_test(test_file_gone),
		cmocka_unit_test(test_not_created),   cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_no_descriptor), cmocka_unit_test(test_slots),
		cmocka_unit_test(test_fork),          cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
