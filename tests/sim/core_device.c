/*
 * Devices, streams and events: a stream is a moment, "busy until". An operation starts when its
 * stream is free, and, as CUDA rules, a NULL stream's operation starts after those of all blocking
 * streams, and theirs after the NULL stream's. Different streams never slow each other down.
 *
 * Waiting is real: the caller sleeps until the moment has come, and spins over the last stretch.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include "core.h"

enum { STREAM_MAGIC = 0x7a5e57e0, SPIN_NS = 80000 };

struct core core = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.host_call_done = PTHREAD_COND_INITIALIZER,
};

static _Thread_local int current_device;
static _Thread_local struct sim_stream *thread_streams[SIM_MAX_DEVICES];

uint64_t core_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void core_busy_wait(uint64_t until)
{
	while (core_now() < until)
		__builtin_ia32_pause();
}

void core_wait_until(uint64_t when)
{
	uint64_t begin = core_now(), now = begin;
	int saved = errno;

	while (now < when) {
		uint64_t left = when - now;

		if (left > SPIN_NS) {
			struct timespec t = {
				.tv_sec = (time_t)((left - SPIN_NS) / 1000000000),
				.tv_nsec = (long)((left - SPIN_NS) % 1000000000),
			};
			nanosleep(&t, NULL);
		} else {
			__builtin_ia32_pause();
		}
		now = core_now();
	}
	if (now != begin)
		core_count_wait(now - begin);
	errno = saved;
}

/* With the lock held: work arrives, or somebody has waited again. */
static void end_idle(struct sim_device *d, uint64_t now)
{
	uint64_t since = d->waited > d->busy_until ? d->waited : d->busy_until;

	if (now > since)
		core_count_idle(d->waiter, now - since);
	d->waiter = NULL;
}

void core_waited(int device)
{
	struct sim_device *d = &core.devices[device];

	core_lock();
	end_idle(d, core_now());
	d->waiter = core_count_call();
	d->waited = core_now();
	core_unlock();
}

static void stream_init(struct sim_stream *s, int device, bool nonblocking, int priority)
{
	*s = (struct sim_stream){
		.magic = STREAM_MAGIC,
		.device = device,
		.nonblocking = nonblocking,
		.priority = priority,
		.id = ++core.next_id,
	};
}

static void forked(void)
{
	pthread_mutex_init(&core.lock, NULL);
	pthread_cond_init(&core.host_call_done, NULL);
	core.forked |= core.used;
	core_count_forked();
	core_lines_forked();
	core_memory_forked();
	core_capture_forked();
	core_host_forked();
}

__attribute__((constructor(102))) static void devices_init(void)
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++) {
		stream_init(&core.devices[i].legacy, i, false, 0);
		core.devices[i].legacy.legacy = true;
	}
	pthread_atfork(NULL, NULL, forked);
}

int sim_device(void)
{
	return current_device;
}

int sim_device_set(int device)
{
	if (device < 0 || device >= sim_config()->device_count)
		return SIM_INVALID_DEVICE;
	current_device = device;
	return SIM_OK;
}

/* ---- the timeline ---- */

uint64_t core_queue_room(struct sim_stream *s)
{
	uint64_t size = (uint64_t)sim_config()->queue, now = core_now();

	if (!s->queue) {
		s->queue = mmap(NULL, size * sizeof(*s->queue), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (s->queue == MAP_FAILED) {
			s->queue = NULL;
			return now;
		}
	}
	uint64_t free_at;
	while ((free_at = s->queue[s->submitted % size]) > now) {
		core_unlock();
		core_wait_until(free_at);
		core_lock();
		now = core_now();
	}
	return now;
}

uint64_t core_append(struct sim_stream *s, uint64_t now, uint64_t ns)
{
	struct sim_device *d = &core.devices[s->device];
	uint64_t start = now;

	core_use();
	if (ns)
		end_idle(d, now);
	if (start < s->busy_until)
		start = s->busy_until;
	if (s->legacy && start < d->blocking_until)
		start = d->blocking_until;
	if (!s->legacy && !s->nonblocking && start < d->legacy.busy_until)
		start = d->legacy.busy_until;

	uint64_t end = start + ns;
	s->busy_until = end;
	if (d->busy_until < end)
		d->busy_until = end;
	if (!s->nonblocking && d->blocking_until < end)
		d->blocking_until = end;
	if (s->queue)
		s->queue[s->submitted++ % (uint64_t)sim_config()->queue] = end;
	return end;
}

uint64_t core_stream_end(const struct sim_stream *s)
{
	const struct sim_device *d = &core.devices[s->device];

	return s->legacy && d->blocking_until > s->busy_until ? d->blocking_until : s->busy_until;
}

int sim_device_synchronize(void)
{
	int rc = sim_capture_check();

	if (rc)
		return rc;
	core_lock();
	uint64_t end = core.devices[current_device].busy_until;
	core_unlock();
	uint64_t start = core_now();
	core_wait_until(end);
	core_host_calls_wait(NULL);
	core_waited(current_device);
	core_observe_sync(SIM_SYNC_CONTEXT, NULL, start);
	return SIM_OK;
}

int sim_device_reset(void)
{
	int rc = sim_device_synchronize();

	current_device = 0;
	return rc;
}

/* ---- streams ---- */

struct sim_stream *sim_stream_create(bool nonblocking, int priority)
{
	struct sim_stream *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	core_lock();
	stream_init(s, current_device, nonblocking, priority);
	core_unlock();
	return s;
}

int sim_stream_destroy(void *handle)
{
	struct sim_stream *s = handle;

	if ((uintptr_t)handle <= 2 || s->magic != STREAM_MAGIC || s->legacy)
		return SIM_INVALID_HANDLE;
	core_lock();
	core_capture_leave(s);
	core_unlock();
	core_host_calls_wait(s);
	if (s->queue)
		munmap(s->queue, (size_t)sim_config()->queue * sizeof(*s->queue));
	s->magic = 0;
	free(s);
	return SIM_OK;
}

static struct sim_stream *per_thread_stream(void)
{
	struct sim_stream **s = &thread_streams[current_device];

	if (!*s)
		*s = sim_stream_create(false, 0);
	return *s;
}

struct sim_stream *sim_stream(void *handle, enum sim_default none)
{
	struct sim_stream *s = handle;

	if (handle == (void *)2 || (!handle && none == SIM_PER_THREAD))
		return per_thread_stream();
	if ((uintptr_t)handle <= 1)
		return &core.devices[current_device].legacy;
	return s->magic == STREAM_MAGIC ? s : NULL;
}

void sim_stream_info(const struct sim_stream *s, struct sim_stream_info *info)
{
	*info = (struct sim_stream_info){
		.id = s->id,
		.device = s->device,
		.priority = s->priority,
		.nonblocking = s->nonblocking,
	};
}

int core_stream_wait(struct sim_stream *s)
{
	core_lock();
	int rc = core_capture_break(s);
	uint64_t end = core_stream_end(s);
	core_unlock();
	if (rc)
		return rc;
	core_wait_until(end);
	core_host_calls_wait(s);
	core_waited(s->device);
	return SIM_OK;
}

int sim_stream_synchronize(struct sim_stream *s)
{
	uint64_t start = core_now();
	int rc = core_stream_wait(s);

	if (!rc)
		core_observe_sync(SIM_SYNC_STREAM, s, start);
	return rc;
}

int sim_stream_query(struct sim_stream *s)
{
	core_lock();
	int rc = core_capture_break(s);
	uint64_t end = core_stream_end(s);
	bool ready = end <= core_now() && !s->host_calls;
	core_unlock();
	if (rc)
		return rc;
	return ready ? SIM_OK : SIM_NOT_READY;
}

int sim_stream_wait_event(struct sim_stream *s, struct sim_event *e)
{
	int rc = SIM_OK;

	core_lock();
	if (e->capture || s->capture)
		rc = core_capture_event_wait(s, e);
	else if (e->recorded && s->busy_until < e->time)
		s->busy_until = e->time;
	core_unlock();
	if (!rc)
		core_observe_sync(SIM_SYNC_STREAM_WAITS, s, core_now());
	return rc;
}

/* ---- events ---- */

struct sim_event *sim_event_create(bool timing)
{
	struct sim_event *e = calloc(1, sizeof(*e));

	if (e)
		e->timing = timing;
	return e;
}

int sim_event_destroy(struct sim_event *e)
{
	free(e);
	return SIM_OK;
}

int sim_event_record(struct sim_event *e, struct sim_stream *s)
{
	int rc = SIM_OK;

	core_lock();
	if (s->capture) {
		rc = core_capture_event_record(e, s);
	} else {
		e->capture = NULL;
		e->time = core_append(s, core_now(), 0);
		e->recorded = true;
	}
	core_unlock();
	return rc;
}

static int event_time(struct sim_event *e, uint64_t *time)
{
	core_lock();
	int rc = e->capture ? SIM_CAPTURE_UNSUPPORTED : SIM_OK;
	*time = e->recorded ? e->time : 0;
	core_unlock();
	return rc;
}

int sim_event_query(struct sim_event *e)
{
	uint64_t time;
	int rc = event_time(e, &time);

	if (rc)
		return rc;
	return time <= core_now() ? SIM_OK : SIM_NOT_READY;
}

int sim_event_synchronize(struct sim_event *e)
{
	uint64_t time;
	uint64_t start = core_now();
	int rc = event_time(e, &time);

	if (rc)
		return rc;
	core_wait_until(time);
	core_waited(current_device);
	core_observe_sync(SIM_SYNC_EVENT, NULL, start);
	return SIM_OK;
}

int sim_event_elapsed(struct sim_event *from, struct sim_event *to, float *ms)
{
	uint64_t begin, end;
	int rc = event_time(from, &begin);

	if (!rc)
		rc = event_time(to, &end);
	if (rc)
		return rc;
	if (!from->timing || !to->timing || !begin || !end)
		return SIM_INVALID_HANDLE;
	if (begin > core_now() || end > core_now())
		return SIM_NOT_READY;
	*ms = (float)(((double)end - (double)begin) / 1e6);
	return SIM_OK;
}
