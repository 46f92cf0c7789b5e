/*
 * load_calls.c: COUNTS SECONDS CALLS THREADS [CHILDREN]: threads that all call the CUDA runtime at once as fast
 * as they can, for SECONDS, or where that is 0: thread n makes CALLS + n calls, of which it makes the second
 * when all have made their first. CHILDREN: as many forked processes do that instead, each with its threads.
 * Begins when its input ends.
 *
 * Each call is counted just before it is made, in the file COUNTS, which is shared: so it holds the truth when the
 * process is killed too. The first 64 bytes of it are for the process: the most memory it had, in KB.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaStreamQuery(void *stream);

struct counter {
	_Alignas(64) _Atomic uint64_t calls;
	uint64_t process, thread;
};

static double seconds;
static uint64_t calls;
static unsigned thread_count;
static atomic_bool over;
static pthread_barrier_t all_called;

static void *run(void *context)
{
	struct counter *counter = context;
	uint64_t most = seconds > 0 ? UINT64_MAX : counter->calls;

	counter->thread = (uint64_t)gettid();
	for (uint64_t i = 1; i <= most && !atomic_load_explicit(&over, memory_order_relaxed); i++) {
		atomic_store_explicit(&counter->calls, i, memory_order_relaxed);
		cudaStreamQuery(NULL);
		if (i == 1 && seconds <= 0)
			pthread_barrier_wait(&all_called);
	}
	return NULL;
}

static int run_threads(struct counter *counters, unsigned first)
{
	pthread_t *threads = calloc(thread_count, sizeof(*threads));

	pthread_barrier_init(&all_called, NULL, thread_count);
	for (unsigned i = 0; threads && i < thread_count; i++) {
		counters[i].process = (uint64_t)getpid();
		counters[i].calls = seconds > 0 ? 0 : calls + first + i;
		if (pthread_create(&threads[i], NULL, run, &counters[i]) != 0)
			return 1;
	}
	if (seconds > 0) {
		usleep((useconds_t)(seconds * 1e6));
		atomic_store(&over, true);
	}
	for (unsigned i = 0; threads && i < thread_count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

static uint64_t most_memory_kb(void)
{
	char line[256];
	uint64_t kb = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmHWM: %lu", &kb) == 1)
			break;
	if (status)
		fclose(status);
	return kb;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	seconds = atof(argv[2]);
	calls = strtoull(argv[3], NULL, 10);
	thread_count = (unsigned)atoi(argv[4]);
	unsigned children = argc > 5 ? (unsigned)atoi(argv[5]) : 0, failed = 0;
	size_t bytes =
		(1 + (size_t)thread_count * (children ? children : 1)) * sizeof(struct counter);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0666), status;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return 1;
	struct counter *counters = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (counters == MAP_FAILED)
		return 1;
	for (char ignored; read(STDIN_FILENO, &ignored, 1) > 0;)
		;
	for (unsigned i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(run_threads(&counters[1 + i * thread_count], i * thread_count));
		failed += pid < 0;
	}
	if (!children)
		failed += (unsigned)run_threads(counters + 1, 0);
	while (wait(&status) > 0)
		failed += status != 0;
	atomic_store(&counters[0].calls, most_memory_kb());
	printf("%u failed\n", failed);
	return 0;
}
