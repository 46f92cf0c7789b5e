/*
 * trace_scan.c: reads all events of a trace by trace_next_batch and does next to nothing with them: how
 * fast the reader is, and how much memory it takes. Prints JSON.
 *
 *     trace_scan FILE [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "traces/reader.h"

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	char message[512];
	struct trace_batch batch;
	struct rusage usage;
	uint64_t events = 0, sum = 0;
	double best = 1e9;

	if (argc < 2)
		return 2;
	double start = cpu_seconds();
	struct trace_reader *reader = trace_open(argv[1], NULL, message, sizeof(message));
	if (!reader) {
		fprintf(stderr, "trace_scan: %s\n", message);
		return 2;
	}
	double opened = cpu_seconds() - start;
	for (int round = argc > 2 ? atoi(argv[2]) : 1; round > 0; round--) {
		start = cpu_seconds();
		events = 0;
		trace_rewind(reader);
		while (trace_next_batch(reader, &batch)) {
			events += batch.count;
			for (uint32_t i = 0; i < batch.count; i++)
				sum += batch.events[i].fields[0] ^ batch.events[i].time;
		}
		double took = cpu_seconds() - start;
		best = took < best ? took : best;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("{\"events\": %llu, \"open_s\": %.4f, \"read_s\": %.4f, \"events_per_s\": %.0f, "
	       "\"peak_kb\": %ld, \"sum\": %llu}\n",
	       (unsigned long long)events, opened, best, (double)events / best, usage.ru_maxrss,
	       (unsigned long long)sum);
	trace_close(reader);
	return 0;
}
