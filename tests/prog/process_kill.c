/*
 * process_kill.c: COUNTS THREADS: each thread calls the CUDA runtime for ever, and counts each call just
 * before it, in the file COUNTS, which is shared: so it holds the truth when the process is killed.
 * Thread n makes its first call before thread n + 1 is started.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int cudaStreamQuery(void *stream);

static struct counter {
	_Alignas(64) _Atomic uint64_t calls;
} * counters;

static void *run(void *context)
{
	struct counter *counter = context;

	for (;;) {
		atomic_fetch_add_explicit(&counter->calls, 1, memory_order_relaxed);
		cudaStreamQuery(NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0666);

	if (fd < 0 || ftruncate(fd, (off_t)(threads * sizeof(*counters))) != 0)
		return 1;
	counters =
		mmap(NULL, threads * sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counters == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, &counters[i]) != 0)
			return 1;
		while (atomic_load(&counters[i].calls) < 2)
			usleep(100);
	}
	pause();
	return 0;
}
