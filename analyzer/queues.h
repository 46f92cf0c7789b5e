/*
 * queues.h: what streams were given to do since they were last waited for, and from where.
 *
 * For waits.c. They tell whether a wait was for its own line's work or for what was queued before. Tables
 * of fixed size, by handle: what finds no room is counted as of other lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct finding_key;
struct model;
struct model_thread;

#define QUEUE_STREAMS 64u
#define QUEUE_EVENTS  256u
#define QUEUE_PLACES  128u

/* Launches, copies and sets that a wait may have been for; those of its own line. */
struct queued {
	uint64_t all, own;
};

struct queue_stream {
	uint64_t stream, works,
		waited; /* how much it was given, and how much of that was waited for */
};

struct queue_event {
	uint64_t event, stream, works; /* recorded behind so much */
};

struct queue_place {
	uint64_t stream, waited, count;
	uint32_t code, site;
};

struct queues {
	struct queue_stream streams[QUEUE_STREAMS];
	struct queue_event events[QUEUE_EVENTS];
	struct queue_place places[QUEUE_PLACES];
};

/* The thread gives a stream something to do, or records an event there. */
void queues_work(struct queues *queues, const struct model_thread *thread, uint64_t stream);
void queues_event(struct queues *queues, uint64_t event, uint64_t stream);

/* Whether the event's stream was given more since: then it has some left when the event has come. */
bool queues_more_behind(const struct queues *queues, uint64_t event);

/* A wait at key's line is over. Adds what it was for to `queued`, less the copy that is waited for. */
void queues_stream_waited(struct queues *queues, const struct model *model, uint64_t stream,
			  const struct finding_key *key, struct queued *queued);
void queues_event_waited(struct queues *queues, const struct model *model, uint64_t event,
			 const struct finding_key *key, struct queued *queued);
void queues_all_waited(struct queues *queues, const struct model *model,
		       const struct finding_key *key, struct queued *queued);
