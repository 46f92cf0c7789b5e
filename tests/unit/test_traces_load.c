/*
 * test_traces_load.c: limits that many threads reach at once, thousands of threads, threads that hardly
 * do anything, and times that are months apart.
 */
#include "tests/unit/traces_util.h"

#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define WRITERS     24u
#define HEADER_SIZE (3 * TRACE_PAGE)
#define DAY_NS      86400000000000u

struct writer {
	struct trace_file *file;
	pthread_barrier_t *start;
	bool defines; /* as much as it can, besides */
	uint32_t thread;
	uint64_t pairs, strings;
};

/* Up to 200 KB, which no block holds. */
static void define_string(struct writer *writer, struct trace_buffer *buffer)
{
	static const char text[200000];
	uint64_t i = writer->strings;
	struct record_STRING string = { (uint32_t)i + 1, { text, (uint32_t)(i * 7919 % 9000) } };

	if (i % 50 == 49)
		string.text.length = (uint32_t)(64000 + i * 104729 % 136000);
	writer->strings += trace_define(buffer, TRACE_RECORD_STRING, &string);
}

static void *write_to_the_stop(void *context)
{
	struct writer *writer = context;
	struct trace_buffer *buffer;

	buffer = trace_buffer_acquire(writer->file, 0);
	pthread_barrier_wait(writer->start);
	if (!buffer)
		return NULL;
	writer->thread = buffer->thread;
	while (!buffer->stopped && writer->pairs < 20000000) {
		if (writer->defines && writer->pairs % 50 == 0)
			define_string(writer, buffer);
		put_pair(buffer, writer->pairs++);
	}
	return NULL;
}

/* All start and stop at once. */
static void write_with_threads(struct writer *writers, struct trace_file *file, bool defines)
{
	pthread_t threads[WRITERS];
	pthread_barrier_t start;

	pthread_barrier_init(&start, NULL, WRITERS);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .file = file, .start = &start, .defines = defines };
		assert_int_equal(pthread_create(&threads[i], NULL, write_to_the_stop, &writers[i]),
				 0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
}

/* What each thread did up to its stop is there, and nothing is broken. */
static void check_threads(const char *path, const struct writer *writers, uint64_t limit,
			  enum trace_stop reason)
{
	struct read_result result;
	struct stat status;
	uint64_t strings = 0;

	assert_int_equal(stat(path, &status), 0);
	assert_true((uint64_t)status.st_size <= (limit > HEADER_SIZE ? limit : HEADER_SIZE));
	assert_true(read_all(path, &result));
	assert_int_equal(result.header.stopped, reason);
	assert_int_equal(result.header.lost_events, 0);
	assert_false(result.summary.truncated);
	assert_int_equal(result.gaps + result.sequence_errors + result.depth_errors, 0);
	for (unsigned i = 0; i < WRITERS; i++) {
		strings += writers[i].strings;
		/* The last enter may have found that recording is over. */
		if (writers[i].thread)
			assert_in_range(result.pairs[writers[i].thread],
					writers[i].pairs ? writers[i].pairs - 1 : 0,
					writers[i].pairs);
	}
	assert_int_equal(result.record_types[TRACE_RECORD_STRING], strings);
}

static void test_max_bytes_of_many_threads(void **state)
{
	static const uint64_t limits[] = { 1, 4096, 100000, 1000000, 4000000, 8000000 };
	struct writer writers[WRITERS];

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(limits) / sizeof(*limits); i++) {
		char *path = temp_path();
		struct trace_file *file = file_create(path);

		file->max_bytes = limits[i / 2];
		write_with_threads(writers, file, i % 2);
		check_threads(path, writers, limits[i / 2], TRACE_STOP_MAX_BYTES);
		/* Enough for all: they are stopped in the midst. */
		if (limits[i / 2] >= 4000000)
			for (unsigned t = 0; t < WRITERS; t++)
				assert_true(writers[t].thread);
		file_free(file);
		temp_remove(path);
	}
}

/* The system's own limit: one byte more would kill the process. */
static void test_file_limit_of_many_threads(void **state)
{
	struct writer *writers = mmap(NULL, WRITERS * sizeof(*writers), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	for (rlim_t bytes = 5000000; bytes < 5000004; bytes++) {
		char *path = temp_path();
		int status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			struct rlimit limit = { bytes, RLIM_INFINITY };
			struct trace_file *file = file_create(path);

			if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
				_exit(1);
			write_with_threads(writers, file, bytes % 2);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		check_threads(path, writers, bytes, TRACE_STOP_FILE_LIMIT);
		temp_remove(path);
	}
	munmap(writers, WRITERS * sizeof(*writers));
}

/* A thread that does little finds out at its next event that others have filled the file. */
static void test_slow_thread_stops_too(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *slow = trace_buffer_acquire(file, 0);
	struct trace_buffer *fast = trace_buffer_acquire(file, 0);
	struct read_result result;
	uint64_t i = 0;

	(void)state;
	file->max_bytes = 500000;
	put_pair(slow, 0);
	while (!fast->stopped && i < 20000000)
		put_pair(fast, i++);
	uint64_t later = trace_now(file) + TRACE_LONG_STEP;
	while (trace_now(file) < later)
		;
	put_pair(slow, 1);
	put_pair(slow, 2);
	assert_true(slow->stopped);
	trace_buffer_release(slow);
	assert_true(read_all(path, &result));
	assert_int_equal(result.pairs[1], 1);
	assert_int_equal(result.pairs[2], i);
	/* What is no longer recorded is not lost. */
	assert_int_equal(result.header.lost_events, 0);
	file_free(file);
	temp_remove(path);
}

/* A block of definitions that there is no room for, in a thread whose events have some. */
static void test_definitions_after_the_stop(void **state)
{
	static const char text[50000];
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	struct record_STRING string = { 1, { text, sizeof(text) } };
	struct read_result result;

	(void)state;
	file->max_bytes = 1;
	put_pair(buffer, 0);
	assert_true(trace_define(buffer, TRACE_RECORD_STRING, &string));
	string.string = 2;
	assert_false(trace_define(buffer, TRACE_RECORD_STRING, &string));
	assert_false(trace_define(buffer, TRACE_RECORD_STRING, &string));
	/* It could name what is not defined. */
	put_pair(buffer, 1);
	assert_true(read_all(path, &result));
	assert_int_equal(result.pairs[1], 1);
	assert_int_equal(result.header.stopped, TRACE_STOP_MAX_BYTES);
	assert_int_equal(result.header.lost_events, 0);
	assert_int_equal(result.record_types[TRACE_RECORD_STRING], 1);
	assert_false(result.summary.truncated);
	file_free(file);
	temp_remove(path);
}

/* ------------------------------------------------------------------------------- threads */

static void *write_few(void *context)
{
	struct trace_buffer *buffer = trace_buffer_acquire(context, 0);

	for (uint64_t i = 0; buffer && i < 20; i++)
		put_pair(buffer, i);
	if (buffer)
		trace_buffer_release(buffer);
	return NULL;
}

/* Thousands, a few at a time: they share slots, and none is forgotten. */
static void test_thousands_of_threads(void **state)
{
	enum { ROUNDS = 625, AT_ONCE = 16 };
	char *path = temp_path(), message[256];
	struct trace_file *file = file_create(path);
	uint64_t frames = 0, threads = 0;
	struct trace_batch batch;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_t ids[AT_ONCE];

		for (unsigned i = 0; i < AT_ONCE; i++)
			assert_int_equal(pthread_create(&ids[i], NULL, write_few, file), 0);
		for (unsigned i = 0; i < AT_ONCE; i++)
			pthread_join(ids[i], NULL);
	}
	assert_in_range(file->slot_count, 1, AT_ONCE);
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	assert_non_null(reader);
	while (trace_next_batch(reader, &batch)) {
		threads += batch.block_start;
		for (uint32_t i = 0; i < batch.count; i++)
			frames += batch.events[i].code == TRACE_FRAME;
	}
	assert_int_equal(threads, ROUNDS * AT_ONCE);
	assert_int_equal(frames, ROUNDS * AT_ONCE * 20);
	assert_int_equal(trace_get_header(reader)->lost_events, 0);
	assert_false(trace_get_summary(reader)->truncated);
	trace_close(reader);
	file_free(file);
	temp_remove(path);
}

/* A thread that hardly does anything: what it did is in the file from then on, in its place in time. */
static void test_slow_among_fast(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *slow = trace_buffer_acquire(file, 0);
	struct trace_buffer *fast[3] = { trace_buffer_acquire(file, 0),
					 trace_buffer_acquire(file, 0),
					 trace_buffer_acquire(file, 0) };
	struct read_result result;

	(void)state;
	for (uint64_t i = 0; i < 300000; i++) {
		if (i % 50000 == 0)
			put_pair(slow, i / 50000);
		put_pair(fast[i % 3], i / 3);
		if (i % 50000 == 25000) {
			assert_true(read_all(path, &result));
			assert_int_equal(result.pairs[1], i / 50000 + 1);
			assert_int_equal(result.pairs[2 + i % 3], i / 3 + 1);
			assert_int_equal(result.order_errors + result.sequence_errors, 0);
			assert_int_equal(result.gaps + result.depth_errors, 0);
		}
	}
	file_free(file);
	temp_remove(path);
}

/* Killed in the midst of writing a block, or of definitions: the file ends in a frame that is live as well. */
static void test_killed_while_writing(void **state)
{
	static const char text[60000];
	struct record_STRING string = { 1, { text, sizeof(text) } };

	(void)state;
	for (unsigned defines = 0; defines < 2; defines++) {
		char *path = temp_path();
		struct trace_file *file = file_create(path);
		struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
		struct read_result result;
		size_t before, after;

		for (uint64_t i = 0; i < 3000; i++)
			put_pair(buffer, i);
		assert_true(trace_define(buffer, TRACE_RECORD_STRING, &string));
		uint8_t *start = slurp(path, &before);
		string.string++;
		if (defines)
			assert_true(trace_define(buffer, TRACE_RECORD_STRING, &string));
		else
			trace_buffer_flush(buffer);
		uint8_t *all = slurp(path, &after);
		assert_true(after > before + sizeof(struct trace_frame));
		memcpy(all, start, before);
		for (size_t length = before; length < after; length++) {
			/* Of less than a header it is not known what it was. */
			bool unknown = length > before &&
				       length < before + sizeof(struct trace_frame);

			spew(path, all, length);
			assert_true(read_all(path, &result));
			assert_int_equal(result.pairs[1], 3000);
			assert_int_equal(result.record_types[TRACE_RECORD_STRING], 1);
			assert_int_equal(result.summary.truncated, unknown);
			length += length > before + 100 ? (after - before) / 10 : 0;
		}
		/* That of another block is missing. */
		struct trace_frame frame;
		memcpy(&frame, all + before, sizeof(frame));
		frame.block++;
		memcpy(all + before, &frame, sizeof(frame));
		spew(path, all, after - 1);
		assert_true(read_all(path, &result));
		assert_true(result.summary.truncated);
		free(start);
		free(all);
		file_free(file);
		temp_remove(path);
	}
}

/* Around what a block of definitions holds, and up to the most that a record may have. */
static void test_huge_definitions(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	char *text = calloc(1, TRACE_RECORD_BYTES_MAX);
	struct record_STRING string = { 0, { text, 0 } };
	struct read_result result;
	uint64_t kept = 0, refused = 0;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		string.string++;
		string.text.length = i < 20 ? TRACE_DEFS_ROOM - 20 + i :
				     i < 38 ? 100000 * (i - 19) :
					      TRACE_RECORD_BYTES_MAX - (i == 38 ? 16 : 0);
		bool good = trace_define(buffer, TRACE_RECORD_STRING, &string);
		kept += good;
		refused += !good;
		put_pair(buffer, i);
	}
	free(text);
	assert_int_equal(kept, 39);
	assert_int_equal(refused, 1);
	assert_true(read_all(path, &result));
	assert_int_equal(result.record_types[TRACE_RECORD_STRING], kept);
	assert_int_equal(result.header.lost_events, refused);
	assert_int_equal(result.pairs[1], 40);
	assert_int_equal(result.sequence_errors + result.gaps, 0);
	file_free(file);
	temp_remove(path);
}

/* ------------------------------------------------------------------------------- time */

/* Steps of every size, from nothing to years. */
static void test_long_times(void **state)
{
	static const uint64_t pauses[] = { 0,
					   1,
					   127,
					   128,
					   TRACE_LONG_STEP - 1,
					   TRACE_LONG_STEP,
					   UINT32_MAX - 1,
					   UINT32_MAX,
					   (uint64_t)UINT32_MAX + 1,
					   DAY_NS,
					   100 * DAY_NS,
					   (uint64_t)1 << 53,
					   (uint64_t)1 << 56 };
	enum { PAUSES = sizeof(pauses) / sizeof(*pauses), EVENTS = 40000 };
	char *path = temp_path(), message[256];
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	struct trace_batch batch;
	uint64_t start = buffer->last_time, now = start, seen = 0, last = start;

	(void)state;
	/* Long pauses are rare, so that the sum stays within 64 bits; blocks fill up in between. */
	for (unsigned i = 0; i < EVENTS; i++) {
		now += pauses[i % 1000 == 999 ? i / 1000 % PAUSES : i % 4];
		trace_put(buffer, now, DEVICE, i);
	}
	trace_buffer_release(buffer);
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	assert_non_null(reader);
	uint64_t time = start;
	while (trace_next_batch(reader, &batch))
		for (uint32_t n = 0; n < batch.count; n++) {
			const struct trace_event *event = &batch.events[n];

			assert_true(event->time >= last || event->code != TRACE_DEVICE);
			if (event->code != TRACE_DEVICE)
				continue;
			assert_int_equal(event->fields[0], seen);
			time += pauses[seen % 1000 == 999 ? seen / 1000 % PAUSES : seen % 4];
			/* A block that is written takes time of the real clock, between two of these. */
			assert_true(event->time >= time && event->time - time < DAY_NS);
			time = last = event->time;
			seen++;
		}
	assert_int_equal(seen, EVENTS);
	assert_false(trace_get_summary(reader)->truncated);
	trace_close(reader);
	file_free(file);
	temp_remove(path);
}

/* A clock that is set back, by a little or by days: no event is lost, none goes back, all are counted. */
static void test_clock_goes_back(void **state)
{
	char *path = temp_path();
	struct trace_file *file = file_create(path);
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	uint64_t now = buffer->last_time + DAY_NS;
	struct read_result result;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		now += i == 300 ? -(uint64_t)5 : i == 600 ? -(uint64_t)DAY_NS : 10;
		uint32_t depth = buffer->depth;
		trace_enter(buffer, now, FRAME, i % 300 + 1, i / 300, 0);
		trace_leave(buffer, now, depth, 0);
	}
	assert_true(read_all(path, &result));
	assert_int_equal(result.pairs[1], 1000);
	assert_int_equal(result.order_errors + result.sequence_errors + result.gaps, 0);
	/* One pair after the small step; all after the large one. */
	assert_int_equal(result.header.negative_steps, 2 + 2 * 400);
	file_free(file);
	temp_remove(path);
}

/* The rate over months, and moments in ns. A pair of the header is as good as one of a frame. */
static void test_rate_over_months(void **state)
{
	static const uint64_t days[] = { 1, 100, 1000 };
	const double unit_ns = 1.0 / 0.6;

	(void)state;
	for (unsigned i = 0; i < sizeof(days) / sizeof(*days); i++) {
		char *path = temp_path(), message[256];
		struct trace_file *file = file_create(path);
		uint64_t units = days[i] * (uint64_t)(DAY_NS * 0.6);
		struct trace_clock_pair start = file->header->load;

		file->header->clock = TRACE_CLOCK_TSC;
		file->header->open = start;
		file->header->open.units++;
		file->header->end.units = start.units + units;
		file->header->end.monotonic_ns = start.monotonic_ns + days[i] * DAY_NS;
		file->header->crc = crc32c(0, file->header, offsetof(struct trace_header, crc));
		struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
		assert_non_null(reader);
		assert_true(fabs(trace_unit_ns(reader) / unit_ns - 1) < 1e-12);
		double end = trace_monotonic_ns(reader, start.units + units);
		double wanted = (double)file->header->end.monotonic_ns;
		/* A double has 53 bits: a few ns in 1000 days. */
		assert_true(fabs(end - wanted) <= (days[i] > 100 ? 64 : 4));
		trace_close(reader);
		file_free(file);
		temp_remove(path);
	}
}

/* Where the kernel has left the counter of the processors, so do we. */
static void test_distrusted_counter(void **state)
{
	static const struct {
		const char *name;
		bool trusted;
	} clocks[] = { { "tsc\n", true },      { "kvm-clock\n", true }, { "hpet\n", false },
		       { "acpi_pm\n", false }, { "jiffies", false },    { "", true } };
	char *path = temp_path();

	(void)state;
	assert_true(trace_ticks_trusted(path));
	for (unsigned i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		spew(path, (const uint8_t *)clocks[i].name, strlen(clocks[i].name));
		assert_int_equal(trace_ticks_trusted(path), clocks[i].trusted);
	}
	unlink(path);

	/* The other clock works as well; what was taken at the start is converted. */
	struct trace_file *file = calloc(1, sizeof(*file));
	struct trace_clock_pair load = trace_clock_start(file);
	struct read_result result;
	file->clock_is_tsc = false;
	file->clock_shift = 0;
	assert_int_equal(trace_file_create(file, path, load), 0);
	file->max_bytes = UINT64_MAX;
	struct trace_buffer *buffer = trace_buffer_acquire(file, 0);
	for (uint64_t i = 0; i < 20000; i++)
		put_pair(buffer, i);
	trace_buffer_release(buffer);
	trace_file_end(file, TRACE_END_EXIT);
	assert_true(read_all(path, &result));
	assert_int_equal(result.header.clock, TRACE_CLOCK_MONOTONIC);
	assert_int_equal(result.header.load.units, result.header.load.monotonic_ns);
	assert_true(result.unit_ns == 1.0);
	assert_int_equal(result.pairs[1], 20000);
	assert_int_equal(result.header.negative_steps, 0);
	file_free(file);
	temp_remove(path);
}

/* Both clocks of a pair are read at the same moment. */
static void test_clock_pair(void **state)
{
	struct trace_file file = { 0 };
	struct trace_clock_pair pair = trace_clock_start(&file);

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t before = machine_clock_ns(CLOCK_MONOTONIC), units = trace_now(&file);

		pair = trace_clock_pair(&file);
		assert_in_range(pair.monotonic_ns, before, machine_clock_ns(CLOCK_MONOTONIC));
		assert_in_range(pair.units, units, trace_now(&file));
	}
	/* Without an invariant counter both are the same clock. */
	file.clock_is_tsc = false;
	file.clock_shift = 0;
	pair = trace_clock_pair(&file);
	assert_true(llabs((long long)(pair.units - pair.monotonic_ns)) < 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max_bytes_of_many_threads),
		cmocka_unit_test(test_file_limit_of_many_threads),
		cmocka_unit_test(test_slow_thread_stops_too),
		cmocka_unit_test(test_definitions_after_the_stop),
		cmocka_unit_test(test_thousands_of_threads),
		cmocka_unit_test(test_slow_among_fast),
		cmocka_unit_test(test_killed_while_writing),
		cmocka_unit_test(test_huge_definitions),
		cmocka_unit_test(test_long_times),
		cmocka_unit_test(test_clock_goes_back),
		cmocka_unit_test(test_rate_over_months),
		cmocka_unit_test(test_distrusted_counter),
		cmocka_unit_test(test_clock_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
