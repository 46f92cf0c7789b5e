/*
 * cuda_calls.c: a tight loop of one cheap runtime call; for each line on stdin it prints ns a call. The
 * benchmark of a CUDA hook.
 *
 * Run with a runtime library (simulated or real) to link against. cudaStreamQuery never waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cudaStreamQuery(void *stream);

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double ns_a_call(int turns)
{
	double start = now_ns();

	for (int turn = 0; turn < turns; turn++)
		cudaStreamQuery(NULL);
	return (now_ns() - start) / turns;
}

int main(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		ns_a_call(1000);
		printf("%f\n", ns_a_call(100000));
		fflush(stdout);
	}
	return 0;
}
