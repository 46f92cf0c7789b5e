/* read_ahead.c: see read_ahead.h. */
#include "analyzer/read_ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* So few events are read before a thread would have begun. */
#define WORTH_EVENTS 1000000u

/* Of a part: it stays in the processor's cache until it is read. */
#define PART_EVENTS  2048u
#define PART_BATCHES 512u
#define PARTS        4u

/* What is handed from one thread to the other at once. A batch is copied: it is valid until the next. */
struct part {
	uint32_t event_count, batch_count;
	bool last;
	struct trace_batch batches[PART_BATCHES];
	struct trace_event events[PART_EVENTS];
};

struct read_ahead_thread {
	pthread_t thread;
	struct trace_reader *reader;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t filled, emptied; /* parts, since the start; under the lock */
	struct trace_batch next;  /* was read, and has no room in the part before; count 0: none */
	uint64_t reading;         /* the caller's part, and its batch in it */
	uint32_t at;
	struct part parts[PARTS];
};

static bool next_to_fill(struct read_ahead_thread *ahead)
{
	return ahead->next.count || trace_next_batch(ahead->reader, &ahead->next);
}

/* False: that is the last one. */
static bool fill(struct read_ahead_thread *ahead, struct part *part)
{
	part->event_count = part->batch_count = 0;
	while (part->batch_count < PART_BATCHES) {
		struct trace_batch *batch = &part->batches[part->batch_count];

		if (!next_to_fill(ahead)) {
			part->last = true;
			return false;
		}
		if (ahead->next.count > PART_EVENTS - part->event_count)
			break;
		*batch = ahead->next;
		batch->events = &part->events[part->event_count];
		memcpy(&part->events[part->event_count], ahead->next.events,
		       batch->count * sizeof(*batch->events));
		part->event_count += batch->count;
		part->batch_count++;
		ahead->next.count = 0;
	}
	part->last = false;
	return true;
}

static void *fill_all(void *context)
{
	struct read_ahead_thread *ahead = context;
	bool more = true;

	while (more) {
		pthread_mutex_lock(&ahead->lock);
		while (ahead->filled - ahead->emptied == PARTS)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		struct part *part = &ahead->parts[ahead->filled % PARTS];
		pthread_mutex_unlock(&ahead->lock);
		more = fill(ahead, part);
		pthread_mutex_lock(&ahead->lock);
		ahead->filled++;
		pthread_cond_signal(&ahead->changed);
		pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

void read_ahead_start(struct read_ahead *ahead, struct trace_reader *reader)
{
	struct read_ahead_thread *thread;

	*ahead = (struct read_ahead){ .reader = reader };
	if (trace_get_summary(reader)->events < WORTH_EVENTS || !(thread = malloc(sizeof(*thread))))
		return;
	thread->reader = reader;
	thread->filled = thread->emptied = thread->reading = 0;
	thread->at = 0;
	thread->next.count = 0;
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->changed, NULL);
	if (pthread_create(&thread->thread, NULL, fill_all, thread) != 0) {
		free(thread);
		return;
	}
	ahead->thread = thread;
}

/* The part that is read now: waits until it is there. */
static const struct part *part_filled(struct read_ahead_thread *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	while (ahead->filled == ahead->reading)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	return &ahead->parts[ahead->reading % PARTS];
}

static void part_emptied(struct read_ahead_thread *ahead)
{
	ahead->at = 0;
	ahead->reading++;
	pthread_mutex_lock(&ahead->lock);
	ahead->emptied++;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
}

bool read_ahead_next(struct read_ahead *ahead, struct trace_batch *batch)
{
	struct read_ahead_thread *thread = ahead->thread;

	if (!thread)
		return trace_next_batch(ahead->reader, batch);
	for (;;) {
		const struct part *part = thread->at ? &thread->parts[thread->reading % PARTS] :
						       part_filled(thread);

		if (thread->at < part->batch_count) {
			*batch = part->batches[thread->at++];
			return true;
		}
		if (part->last)
			return false;
		part_emptied(thread);
	}
}

void read_ahead_end(struct read_ahead *ahead)
{
	if (!ahead->thread)
		return;
	pthread_join(ahead->thread->thread, NULL);
	pthread_mutex_destroy(&ahead->thread->lock);
	pthread_cond_destroy(&ahead->thread->changed);
	free(ahead->thread);
	ahead->thread = NULL;
}
