/*
 * Stream capture and graphs. A capturing stream has a time of its own that starts at 0; work that
 * is recorded advances it, an event carries it to other streams and takes them into the capture,
 * and the latest of them all is how long a launch of the graph keeps its stream busy. So parallel
 * branches overlap as they would on a device.
 *
 * A graph's nodes are never removed, so an instantiated graph shares them: it holds a reference and
 * remembers how many there were.
 */
#include <stdlib.h>
#include <unistd.h>
#include "core.h"

struct node {
	struct sim_work work;
	uint64_t offset;
};

struct kept {
	void (*drop)(void *);
	void *object;
	struct kept *next;
};

struct sim_graph {
	unsigned references;
	uint32_t number;
	struct node **nodes;
	size_t count, room;
	uint64_t ns;
	struct kept *kept;
};

struct sim_exec {
	struct sim_graph *graph;
	size_t count;
	uint64_t ns;
};

struct sim_capture {
	unsigned long long id;
	enum sim_mode mode;
	pid_t owner;
	bool broken, into_existing;
	struct sim_stream *origin, *streams;
	struct sim_graph *graph;
	struct sim_capture *next;
};

static struct sim_capture *captures;
static _Thread_local enum sim_mode thread_mode;

void core_capture_forked(void)
{
	captures = NULL;
}

/* ---- graphs ---- */

struct sim_graph *sim_graph_create(void)
{
	struct sim_graph *g = calloc(1, sizeof(*g));

	if (!g)
		return g;
	static _Atomic uint32_t graphs;
	g->references = 1;
	g->number = ++graphs;
	return g;
}

void sim_graph_destroy(struct sim_graph *g)
{
	core_lock();
	unsigned left = --g->references;
	core_unlock();
	if (left)
		return;
	for (struct kept *k = g->kept, *next; k; k = next) {
		next = k->next;
		k->drop(k->object);
		free(k);
	}
	for (size_t i = 0; i < g->count; i++)
		free(g->nodes[i]);
	free(g->nodes);
	free(g);
}

size_t sim_graph_nodes(const struct sim_graph *g, void **nodes, size_t room)
{
	core_lock();
	size_t count = g->count;
	for (size_t i = 0; nodes && i < room && i < count; i++)
		nodes[i] = g->nodes[i];
	core_unlock();
	return count;
}

void sim_graph_keep(struct sim_graph *g, void (*drop)(void *), void *object)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return;
	core_lock();
	*k = (struct kept){ .drop = drop, .object = object, .next = g->kept };
	g->kept = k;
	core_unlock();
}

int core_graph_add(struct sim_graph *g, const struct sim_work *work, uint64_t offset)
{
	if (g->count == g->room) {
		size_t room = g->room ? g->room * 2 : 64;
		struct node **nodes = realloc(g->nodes, room * sizeof(struct node *));

		if (!nodes)
			return SIM_OUT_OF_MEMORY;
		g->nodes = nodes;
		g->room = room;
	}
	struct node *node = malloc(sizeof(*node));
	if (!node)
		return SIM_OUT_OF_MEMORY;
	*node = (struct node){ .work = *work, .offset = offset };
	if (work->kind == SIM_KERNEL)
		node->work.touched = NULL;
	g->nodes[g->count++] = node;
	if (g->ns < offset + work->ns)
		g->ns = offset + work->ns;
	return SIM_OK;
}

struct sim_exec *sim_graph_instantiate(struct sim_graph *g)
{
	struct sim_exec *x = malloc(sizeof(*x));

	if (!x)
		return NULL;
	core_lock();
	g->references++;
	*x = (struct sim_exec){ .graph = g, .count = g->count, .ns = g->ns };
	core_unlock();
	return x;
}

void sim_exec_destroy(struct sim_exec *x)
{
	sim_graph_destroy(x->graph);
	free(x);
}

int sim_exec_update(struct sim_exec *x, struct sim_graph *g)
{
	struct sim_graph *old = x->graph;

	core_lock();
	g->references++;
	*x = (struct sim_exec){ .graph = g, .count = g->count, .ns = g->ns };
	core_unlock();
	sim_graph_destroy(old);
	return SIM_OK;
}

/* A graph that is launched into a capture becomes part of it, node by node. */
static int capture_nodes(const struct sim_exec *x, struct sim_stream *s)
{
	uint64_t begin = s->capture_ns;
	int rc = SIM_OK;

	for (size_t i = 0; !rc && i < x->count; i++) {
		s->capture_ns = begin + x->graph->nodes[i]->offset;
		rc = core_capture_add(s, &x->graph->nodes[i]->work);
	}
	s->capture_ns = begin + x->ns;
	return rc;
}

int sim_exec_launch(struct sim_exec *x, struct sim_stream *s)
{
	core_lock();
	if (s->capture) {
		int rc = capture_nodes(x, s);

		core_unlock();
		return rc;
	}
	uint64_t end = core_append(s, core_queue_room(s), x->ns), start = end - x->ns;
	core_observe_graph(s, start, end, x->graph->number);
	for (size_t i = 0; i < x->count; i++) {
		const struct node *node = x->graph->nodes[i];

		core_observe_work(s, &node->work, start + node->offset + node->work.ns,
				  x->graph->number, i + 1);
		core_work_run(s, &node->work, start + node->offset + node->work.ns);
	}
	core_unlock();
	if (sim_config()->blocking)
		core_wait_until(end);
	return SIM_OK;
}

/* ---- capture ---- */

static void join(struct sim_capture *c, struct sim_stream *s, uint64_t at)
{
	s->capture = c;
	s->capture_ns = at;
	s->capture_next = c->streams;
	c->streams = s;
}

void core_capture_leave(struct sim_stream *s)
{
	struct sim_stream **at;

	if (!core_capture_break(s))
		return;
	at = &s->capture->streams;
	while (*at != s)
		at = &(*at)->capture_next;
	*at = s->capture_next;
	s->capture = NULL;
}

int core_capture_break(struct sim_stream *s)
{
	if (!s->capture)
		return SIM_OK;
	s->capture->broken = true;
	return SIM_CAPTURE_UNSUPPORTED;
}

int core_capture_add(struct sim_stream *s, const struct sim_work *work)
{
	struct sim_capture *c = s->capture;

	if (c->broken)
		return SIM_CAPTURE_INVALIDATED;
	int rc = core_graph_add(c->graph, work, s->capture_ns);
	if (!rc)
		s->capture_ns += work->ns;
	return rc;
}

int core_capture_event_record(struct sim_event *e, struct sim_stream *s)
{
	if (s->capture->broken)
		return SIM_CAPTURE_INVALIDATED;
	e->capture = s->capture;
	e->capture_id = s->capture->id;
	e->time = s->capture_ns;
	e->recorded = true;
	return SIM_OK;
}

/* The capture that the event was recorded in, as long as it goes on. */
static struct sim_capture *event_capture(const struct sim_event *e)
{
	for (struct sim_capture *c = captures; c; c = c->next)
		if (c == e->capture && c->id == e->capture_id)
			return c;
	return NULL;
}

int core_capture_event_wait(struct sim_stream *s, struct sim_event *e)
{
	struct sim_capture *c = event_capture(e);

	if (!c) /* nothing recorded, or a moment outside of this capture */
		return e->capture || !s->capture ? SIM_INVALID_VALUE : SIM_OK;
	if (s->capture && s->capture != c)
		return core_capture_break(s);
	if (!s->capture)
		join(c, s, e->time);
	else if (s->capture_ns < e->time)
		s->capture_ns = e->time;
	return SIM_OK;
}

int sim_capture_begin(struct sim_stream *s, enum sim_mode mode, struct sim_graph *into)
{
	struct sim_capture *c = calloc(1, sizeof(*c));
	int rc = SIM_OK;

	if (!c)
		return SIM_OUT_OF_MEMORY;
	c->graph = into ? into : sim_graph_create();
	c->into_existing = into != NULL;
	c->mode = mode;
	c->owner = gettid();
	c->origin = s;
	core_lock();
	if (s->legacy) {
		rc = SIM_CAPTURE_UNSUPPORTED;
	} else if (s->capture) {
		rc = SIM_ILLEGAL_STATE;
	} else {
		c->id = ++core.next_id;
		join(c, s, 0);
		c->next = captures;
		captures = c;
	}
	core_unlock();
	if (rc) {
		if (!into)
			sim_graph_destroy(c->graph);
		free(c);
	}
	return rc;
}

static void leave(struct sim_capture *c)
{
	struct sim_capture **at = &captures;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	for (struct sim_stream *s = c->streams; s; s = s->capture_next)
		s->capture = NULL;
}

int sim_capture_end(struct sim_stream *s, struct sim_graph **graph)
{
	struct sim_capture *c;
	int rc = SIM_OK;

	*graph = NULL;
	core_lock();
	c = s->capture;
	if (!c)
		rc = SIM_ILLEGAL_STATE;
	else if (c->origin != s)
		rc = SIM_CAPTURE_UNMATCHED;
	else if (c->mode != SIM_RELAXED && c->owner != gettid())
		rc = SIM_CAPTURE_WRONG_THREAD;
	if (!rc)
		leave(c);
	core_unlock();
	if (rc)
		return rc;
	if (!c->broken)
		*graph = c->graph;
	else if (!c->into_existing)
		sim_graph_destroy(c->graph);
	rc = c->broken ? SIM_CAPTURE_INVALIDATED : SIM_OK;
	free(c);
	return rc;
}

enum sim_capture_status sim_capture_info(struct sim_stream *s, unsigned long long *id,
					 struct sim_graph **graph)
{
	enum sim_capture_status status = SIM_CAPTURE_NONE;

	core_lock();
	if (s->capture) {
		status = s->capture->broken ? SIM_CAPTURE_BROKEN : SIM_CAPTURE_ACTIVE;
		*id = s->capture->id;
		*graph = s->capture->graph;
	}
	core_unlock();
	return status;
}

enum sim_mode sim_capture_exchange_mode(enum sim_mode mode)
{
	enum sim_mode before = thread_mode;

	thread_mode = mode;
	return before;
}

int sim_capture_check(void)
{
	int rc = SIM_OK;

	if (thread_mode == SIM_RELAXED)
		return rc;
	core_lock();
	for (struct sim_capture *c = captures; c; c = c->next) {
		if (c->mode == SIM_RELAXED ||
		    (c->owner != gettid() && (c->mode != SIM_GLOBAL || thread_mode != SIM_GLOBAL)))
			continue;
		c->broken = true;
		rc = SIM_CAPTURE_UNSUPPORTED;
	}
	core_unlock();
	return rc;
}
