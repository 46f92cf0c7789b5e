/* queues.c: see queues.h. */
#include "analyzer/queues.h"

#include "analyzer/hash.h"
#include "analyzer/model.h"
#include "analyzer/opview.h"

/* Handles are addresses. */
static uint32_t place_of(uint64_t handle, uint64_t mixed, uint32_t places)
{
	return (uint32_t)hash_mix(mixed, handle >> 3) % places;
}

static struct queue_stream *stream_at(struct queues *queues, uint64_t handle)
{
	struct queue_stream *found = &queues->streams[place_of(handle, 0, QUEUE_STREAMS)];

	/* Counts go on: what was noted of another stream there differs. */
	if (found->stream != handle)
		*found = (struct queue_stream){ handle, found->works + 1, found->works + 1 };
	return found;
}

void queues_work(struct queues *queues, const struct model_thread *thread, uint64_t handle)
{
	const struct span *frame = &thread->stack[thread->stack[thread->top].frame];
	struct queue_stream *stream = stream_at(queues, handle);
	struct queue_place *place =
		&queues->places[place_of(handle, hash_mix(frame->code, frame->site), QUEUE_PLACES)];

	stream->works++;
	if (place->code != frame->code || place->site != frame->site || place->stream != handle ||
	    place->waited != stream->waited)
		*place =
			(struct queue_place){ handle, stream->waited, 0, frame->code, frame->site };
	place->count++;
}

void queues_event(struct queues *queues, uint64_t event, uint64_t stream)
{
	queues->events[place_of(event, 0, QUEUE_EVENTS)] =
		(struct queue_event){ event, stream, stream_at(queues, stream)->works };
}

static const struct queue_event *event_at(const struct queues *queues, uint64_t handle)
{
	const struct queue_event *found = &queues->events[place_of(handle, 0, QUEUE_EVENTS)];

	return handle && found->event == handle ? found : NULL;
}

bool queues_more_behind(const struct queues *queues, uint64_t handle)
{
	const struct queue_event *event = event_at(queues, handle);
	const struct queue_stream *stream =
		event ? &queues->streams[place_of(event->stream, 0, QUEUE_STREAMS)] : NULL;

	return stream && stream->stream == event->stream && stream->works > event->works;
}

static uint64_t work_of_line(const struct queues *queues, const struct model *model,
			     const struct queue_stream *stream, const struct finding_key *key)
{
	uint32_t line = key->code ? site_line(model, key->code, key->site) : 0;
	uint64_t count = 0;

	for (uint32_t i = 0; line && i < QUEUE_PLACES; i++) {
		const struct queue_place *place = &queues->places[i];

		if (place->code == key->code && place->stream == stream->stream &&
		    place->waited == stream->waited &&
		    site_line(model, place->code, place->site) == line)
			count += place->count;
	}
	return count;
}

/* The stream has done the first `works`. */
static void waited(struct queues *queues, const struct model *model, struct queue_stream *stream,
		   uint64_t works, const struct finding_key *key, struct queued *queued)
{
	if (works <= stream->waited)
		return;
	queued->all += works - stream->waited;
	queued->own += work_of_line(queues, model, stream, key);
	stream->waited = works;
}

void queues_stream_waited(struct queues *queues, const struct model *model, uint64_t handle,
			  const struct finding_key *key, struct queued *queued)
{
	struct queue_stream *stream = stream_at(queues, handle);

	bool copied = key->copy && stream->works > stream->waited;

	waited(queues, model, stream, stream->works, key, queued);
	queued->all -= copied;
	queued->own -= copied && queued->own;
}

void queues_event_waited(struct queues *queues, const struct model *model, uint64_t handle,
			 const struct finding_key *key, struct queued *queued)
{
	const struct queue_event *event = event_at(queues, handle);

	if (event)
		waited(queues, model, stream_at(queues, event->stream), event->works, key, queued);
}

void queues_all_waited(struct queues *queues, const struct model *model,
		       const struct finding_key *key, struct queued *queued)
{
	for (uint32_t i = 0; i < QUEUE_STREAMS; i++)
		waited(queues, model, &queues->streams[i], queues->streams[i].works, key, queued);
}
