/*
 * Tells who observes the device, the stand-in for CUPTI, of calls and of what they make the device
 * do. Until somebody does, a call costs one look.
 */
#include <stdatomic.h>
#include "core.h"

static const struct sim_observer *_Atomic observer;
static _Atomic uint32_t correlations;
static _Thread_local uint32_t correlation; /* of the call in progress */

void sim_observe(const struct sim_observer *o)
{
	atomic_store(&observer, o);
}

uint64_t sim_now(void)
{
	return core_now();
}

bool sim_forked(void)
{
	return core.forked;
}

static void scope_begin(struct sim_scope *scope)
{
	const struct sim_observer *o = observer;

	if (!o || core.forked || scope->api == SIM_NO_API)
		return;
	scope->correlation = ++correlations;
	scope->around = correlation;
	correlation = scope->correlation;
	o->enter(scope);
}

int sim_enter(struct sim_scope *scope, struct sim_library *lib, unsigned function, int column,
	      size_t bytes)
{
	*scope = (struct sim_scope){ .api = lib->api, .function = lib->functions[function] };
	scope_begin(scope);
	return sim_call(lib, function, column, bytes);
}

void sim_enter_private(struct sim_scope *scope, enum sim_api api, const char *function)
{
	*scope = (struct sim_scope){ .api = api, .function = function };
	scope_begin(scope);
}

void sim_leave(struct sim_scope *scope)
{
	const struct sim_observer *o = observer;

	if (!scope->correlation)
		return;
	correlation = scope->around;
	if (o)
		o->leave(scope);
}

static void tell(struct sim_activity *activity, const struct sim_stream *s)
{
	const struct sim_observer *o = observer;

	if (!o || core.forked)
		return;
	activity->correlation = correlation;
	activity->device = s ? s->device : sim_device();
	activity->stream = s ? (uint32_t)s->id : 0;
	o->activity(activity);
}

void core_observe_work(const struct sim_stream *s, const struct sim_work *work, uint64_t end,
		       uint32_t graph, uint64_t node)
{
	struct sim_activity a = {
		.start = end - work->ns,
		.end = end,
		.graph = graph,
		.node = node,
	};

	switch (work->kind) {
	case SIM_KERNEL:
		a.kind = SIM_ACTIVITY_KERNEL;
		a.name = work->name;
		break;
	case SIM_COPY:
		a.kind = SIM_ACTIVITY_COPY;
		a.bytes = work->copy.width * work->copy.height * work->copy.depth;
		a.column = work->copy.column;
		a.from = work->copy.from;
		a.to = work->copy.to;
		a.async = work->copy.async;
		break;
	case SIM_SET:
		a.kind = SIM_ACTIVITY_SET;
		a.bytes = work->set.width * work->set.height * work->set.depth;
		a.to = work->set.to;
		a.value = work->set.value;
		break;
	case SIM_HOST: return;
	}
	tell(&a, s);
}

void core_observe_graph(const struct sim_stream *s, uint64_t start, uint64_t end, uint32_t graph)
{
	struct sim_activity a = {
		.kind = SIM_ACTIVITY_GRAPH,
		.start = start,
		.end = end,
		.graph = graph,
	};

	tell(&a, s);
}

void core_observe_sync(enum sim_sync sync, const struct sim_stream *s, uint64_t start)
{
	struct sim_activity a = {
		.kind = SIM_ACTIVITY_SYNC,
		.sync = sync,
		.start = start,
		.end = core_now(),
	};

	if (!observer)
		return;
	core_lock();
	tell(&a, s);
	core_unlock();
}
