/*
 * cuda_calls.c: a tight loop of one cheap runtime call; prints ns a call. The benchmark of a CUDA hook.
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(void)
{
	enum { TURNS = 200000, ROUNDS = 7 };
	double times[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns();

		for (int turn = 0; turn < TURNS; turn++)
			cudaStreamQuery(NULL);
		times[round] = (now_ns() - start) / TURNS;
	}
	qsort(times, ROUNDS, sizeof(*times), by_value);
	printf("%f\n", times[ROUNDS / 2]);
	return 0;
}
