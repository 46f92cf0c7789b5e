/* load_short.c: THREADS AT_ONCE: threads that make three calls each, a few at a time, until there were so many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE_MAX 64u

int cudaStreamQuery(void *stream);

static void *run(void *unused)
{
	for (unsigned i = 0; i < 3; i++)
		cudaStreamQuery(NULL);
	return unused;
}

int main(int argc, char **argv)
{
	unsigned left = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	unsigned at_once = argc > 2 ? (unsigned)atoi(argv[2]) : 1, failed = 0;
	pthread_t threads[AT_ONCE_MAX];

	while (left && at_once <= AT_ONCE_MAX) {
		unsigned count = left < at_once ? left : at_once;

		for (unsigned i = 0; i < count; i++)
			failed += pthread_create(&threads[i], NULL, run, NULL) != 0;
		for (unsigned i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
		left -= count;
	}
	printf("%u failed\n", failed);
	return 0;
}
