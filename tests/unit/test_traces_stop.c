/* test_traces_stop.c: what ends the writing: limits, full disks, lost files, forks, cancelled threads. */
#include "tests/unit/traces_util.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

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
		cmocka_unit_test(test_max_bytes), cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_file_gone), cmocka_unit_test(test_not_created),
		cmocka_unit_test(test_full_disk), cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_slots),     cmocka_unit_test(test_fork),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
