/*
 * Host functions on a stream: one thread calls each when its moment has come, in the order of those
 * moments. The thread starts with the first of them and lives as long as the process.
 */
#include <stdlib.h>
#include "core.h"

struct host_call {
	uint64_t when;
	struct sim_stream *stream;
	void (*call)(void *);
	void *arg;
	struct host_call *next;
};

static struct host_call *calls; /* by time; guarded by the core's lock */
static unsigned pending;        /* on all streams */
static pthread_cond_t added = PTHREAD_COND_INITIALIZER;
static bool started;

void core_host_forked(void)
{
	pthread_cond_init(&added, NULL);
}

static void *host_thread(void *unused)
{
	core_lock();
	for (;;) {
		while (!calls)
			pthread_cond_wait(&added, &core.lock);
		struct host_call *c = calls;
		calls = c->next;
		core_unlock();
		core_wait_until(c->when);
		c->call(c->arg);
		core_lock();
		c->stream->host_calls--;
		pending--;
		pthread_cond_broadcast(&core.host_call_done);
		free(c);
	}
	return unused;
}

void core_host_call(struct sim_stream *s, uint64_t when, void (*call)(void *), void *arg)
{
	struct host_call *c = malloc(sizeof(*c));
	struct host_call **at = &calls;
	pthread_t thread;

	if (!c)
		return;
	*c = (struct host_call){ .when = when, .stream = s, .call = call, .arg = arg };
	while (*at && (*at)->when <= when)
		at = &(*at)->next;
	c->next = *at;
	*at = c;
	s->host_calls++;
	pending++;
	if (!started && !pthread_create(&thread, NULL, host_thread, NULL)) {
		pthread_detach(thread);
		started = true;
	}
	pthread_cond_signal(&added);
}

void core_host_calls_wait(struct sim_stream *s)
{
	core_lock();
	while (s ? s->host_calls : pending)
		pthread_cond_wait(&core.host_call_done, &core.lock);
	core_unlock();
}
