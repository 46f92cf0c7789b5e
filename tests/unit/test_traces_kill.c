/* test_traces_kill.c: processes that are killed while they write leave traces that read to their last event. */
#include "tests/unit/traces_util.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define WRITERS 3

/* The sanitizers take their time. */
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 15
#else
#define ROUNDS 50
#endif

/* Shared with the child: how many pairs each thread has put. */
struct progress {
	struct {
		uint64_t pairs;
		char apart[56];
	} threads[WRITERS];
	uint64_t short_threads; /* that came and went */
};

struct writer {
	struct trace_file *file;
	uint64_t *pairs;
	pthread_barrier_t *ready;
	bool slow;
};

static struct progress *progress;

static void *write_forever(void *context)
{
	struct writer *writer = context;
	struct trace_buffer *buffer = trace_buffer_acquire(writer->file, 0);

	/* Thread numbers in the order of the counters. */
	pthread_barrier_wait(writer->ready);
	for (uint64_t i = 0;; i++) {
		put_pair(buffer, i);
		__atomic_store_n(writer->pairs, i + 1, __ATOMIC_RELEASE);
		if (writer->slow && i % 200 == 0)
			usleep(1000);
	}
	return NULL;
}

static void *write_short(void *context)
{
	struct trace_buffer *buffer = trace_buffer_acquire(context, 0);

	for (uint64_t i = 0; i < 100; i++)
		put_pair(buffer, i);
	trace_buffer_release(buffer);
	return NULL;
}

static void __attribute__((noreturn)) child(const char *path, bool slow)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct trace_file *file = file_create(path);
	struct writer writers[WRITERS];
	pthread_barrier_t ready[WRITERS];
	pthread_t thread;

	for (unsigned i = 0; i < WRITERS; i++) {
		pthread_barrier_init(&ready[i], NULL, 2);
		writers[i] = (struct writer){ file, &progress->threads[i].pairs, &ready[i], slow };
		pthread_create(&thread, NULL, write_forever, &writers[i]);
		pthread_barrier_wait(&ready[i]);
	}
	/* Threads that use one slot, one after the other. */
	for (;;) {
		pthread_create(&thread, NULL, write_short, file);
		pthread_join(thread, NULL);
		if (slow)
			usleep(500);
		__atomic_add_fetch(&progress->short_threads, 1, __ATOMIC_RELEASE);
	}
}

static uint64_t read_short_threads(const char *path)
{
	char message[256];
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	struct trace_batch batch;
	uint64_t frames = 0;

	assert_non_null(reader);
	while (trace_next_batch(reader, &batch))
		for (uint32_t i = 0; i < batch.count && batch.thread > WRITERS; i++)
			frames += batch.events[i].code == TRACE_FRAME;
	trace_close(reader);
	return frames;
}

static void test_kill(void **state)
{
	char *path = temp_path();
	uint64_t random = 1, written = 0;
	struct read_result result;

	(void)state;
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	for (int round = 0; round < ROUNDS; round++) {
		memset(progress, 0, sizeof(*progress));
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			child(path, false);
		/* Once all have begun, at any moment. */
		while (!__atomic_load_n(&progress->threads[WRITERS - 1].pairs, __ATOMIC_ACQUIRE))
			usleep(100);
		random = random * 6364136223846793005u + 1442695040888963407u;
		usleep((useconds_t)(random >> 33) % 3000);
		assert_int_equal(kill(pid, round % 2 ? SIGKILL : SIGTERM), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);

		assert_true(read_all(path, &result));
		assert_int_equal(result.gaps + result.sequence_errors + result.order_errors, 0);
		assert_int_equal(result.depth_errors, 0);
		assert_false(result.summary.damaged_frames || result.summary.skipped_bytes);
		assert_int_equal(result.header.ended, TRACE_END_NONE);
		for (unsigned i = 0; i < WRITERS; i++) {
			uint64_t pairs = progress->threads[i].pairs;

			/* The counter is raised after the events are put. */
			assert_in_range(result.pairs[i + 1], pairs, pairs + 1);
			written += pairs;
		}
		assert_in_range(read_short_threads(path), progress->short_threads * 100,
				progress->short_threads * 100 + 100);
		unlink(path);
	}
	assert_true(written > 0);
	temp_remove(path);
}

/* A writer that does not stop is read again and again: always a beginning of all that it writes. */
static void test_read_while_written(void **state)
{
	char *path = temp_path();
	struct read_result result;
	uint64_t last = 0;

	(void)state;
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(path, true);
	while (!__atomic_load_n(&progress->threads[WRITERS - 1].pairs, __ATOMIC_ACQUIRE))
		usleep(100);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = __atomic_load_n(&progress->threads[0].pairs, __ATOMIC_ACQUIRE);

		assert_true(read_all(path, &result));
		assert_int_equal(result.gaps + result.sequence_errors + result.order_errors, 0);
		assert_int_equal(result.summary.damaged_frames + result.summary.skipped_bytes, 0);
		assert_true(result.pairs[1] >= before && result.pairs[1] >= last);
		last = result.pairs[1];
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	temp_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_read_while_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
