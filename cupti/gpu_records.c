/*
 * gpu_records.c: CUPTI's buffers, and what is written of the records in them.
 *
 * CUPTI asks for buffers in any thread, and gives them back full, mostly in a thread of its own. Their events
 * go into buffers of the trace that belong to no thread, one for each device, one thread at a time. Times
 * there do not go back: what comes late says how much earlier it was. No buffer is ever refused: versions
 * before 12.9 can crash then.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "cupti/gpu.h"
#include "traces/crc32c.h"

#define BUFFER_BYTES (512u << 10)
#define BUFFERS_MAX  256u
#define NAMES        8192u
#define NAME_MAX_    4096u
#define QUEUES       256u
#define DEVICES      16u
#define ANCHOR_NS    1000000000u
#define CLOCK_READS  10u

static struct {
	uint8_t *buffers[BUFFERS_MAX];          /* free ones; taken and given atomically */
	uint32_t lock;                          /* of all below */
	struct trace_buffer *outs[DEVICES + 1]; /* of each device; the first: of the host's side */
	struct trace_clock_pair anchor, before; /* the newest, and one at least a second older */
	uint64_t started;                       /* clock units */
	uint64_t unfinished;                    /* records without times */
	struct {
		uint64_t hash; /* of the name; 0: free */
		uint32_t id;
	} names[NAMES];
	uint32_t name_count;
	struct {
		uint32_t device, context, stream, id; /* id 0: free */
	} queues[QUEUES];
	uint32_t queue_ids;
} records;

/* ---------------------------------------------------------------- buffers */

void gpu_buffer_requested(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
	uint8_t *found = NULL;

	for (unsigned i = 0; i < BUFFERS_MAX && !found; i++)
		if (__atomic_load_n(&records.buffers[i], __ATOMIC_RELAXED))
			found = __atomic_exchange_n(&records.buffers[i], NULL, __ATOMIC_ACQUIRE);
	if (!found) {
		found = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (found == MAP_FAILED)
			found = NULL;
	}
	*buffer = found;
	*bytes = found ? BUFFER_BYTES : 0;
	*records_max = 0;
}

static void buffer_free(uint8_t *buffer)
{
	for (unsigned i = 0; i < BUFFERS_MAX; i++) {
		uint8_t *none = NULL;

		if (!__atomic_load_n(&records.buffers[i], __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&records.buffers[i], &none, buffer, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	munmap(buffer, BUFFER_BYTES);
}

/* Never held while CUPTI or the program is called. */
static void lock(void)
{
	while (__atomic_exchange_n(&records.lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&records.lock, 0, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- time */

uint64_t gpu_clock(void)
{
	return machine_clock_ns(CLOCK_MONOTONIC);
}

/* Of several, the one that was read in the shortest time. */
static struct trace_clock_pair clock_pair(void)
{
	struct trace_clock_pair best = { 0, 0 };
	uint64_t shortest = UINT64_MAX;

	for (unsigned i = 0; i < CLOCK_READS; i++) {
		uint64_t before = tare_now(), ns = gpu_clock(), took = tare_now() - before;

		if (took < shortest) {
			shortest = took;
			best = (struct trace_clock_pair){ before + took / 2, ns };
		}
	}
	return best;
}

static void clock_look(void)
{
	struct trace_clock_pair now = clock_pair();

	if (now.monotonic_ns - records.anchor.monotonic_ns > ANCHOR_NS)
		records.before = records.anchor;
	records.anchor = now;
}

/* Most records are younger than a second: between two pairs that lie about as far apart. */
static uint64_t units_of(uint64_t ns)
{
	const struct trace_clock_pair *now = &records.anchor, *before = &records.before;
	double rate = now->monotonic_ns > before->monotonic_ns ?
			      (double)(now->units - before->units) /
				      (double)(now->monotonic_ns - before->monotonic_ns) :
			      1;
	double distance = (double)(int64_t)(now->monotonic_ns - ns) * rate;

	return now->units - (uint64_t)(int64_t)distance;
}

/* ---------------------------------------------------------------- streams of the trace */

bool gpu_records_start(void)
{
	records.anchor = records.before = clock_pair();
	records.started = records.anchor.units;
	records.outs[0] = trace_buffer_acquire_others(&tare_process.file, "cupti", records.started);
	return records.outs[0] != NULL;
}

/* NULL: there is no room for it. */
static struct trace_buffer *out_of(uint32_t device)
{
	static const char names[] =
		"gpu 0\0\0gpu 1\0\0gpu 2\0\0gpu 3\0\0gpu 4\0\0gpu 5\0\0gpu 6\0\0"
		"gpu 7\0\0gpu 8\0\0gpu 9\0\0gpu 10\0gpu 11\0gpu 12\0gpu 13\0"
		"gpu 14\0gpu 15";
	uint32_t at = device < DEVICES ? device : DEVICES - 1;

	if (!records.outs[at + 1])
		records.outs[at + 1] = trace_buffer_acquire_others(&tare_process.file,
								   names + 7 * at, records.started);
	return records.outs[at + 1];
}

/* Ids of queues and strings go on counting; what was defined is not in the child's trace. */
void gpu_records_forget(void)
{
	records.lock = 0;
	memset(records.outs, 0, sizeof(records.outs));
}

/* ---------------------------------------------------------------- ids */

static uint32_t define_name(const char *name, size_t bytes)
{
	uint32_t id = tare_next_id(&tare_string_ids);

	trace_define(records.outs[0], TRACE_RECORD_STRING,
		     &(struct record_STRING){ .string = id, .text = { name, (uint32_t)bytes } });
	return id;
}

/* By contents: a module that is unloaded gives its names' addresses to others. */
static uint32_t name_id(const char *name)
{
	size_t bytes = name ? strnlen(name, NAME_MAX_) : 0;
	uint32_t sum = crc32c(0, name, bytes);
	uint64_t hash = (uint64_t)(bytes + 1) << 32 | sum;

	for (uint32_t probe = sum;; probe++) {
		uint32_t at = probe % NAMES;

		if (records.names[at].hash == hash)
			return records.names[at].id;
		if (records.names[at].hash)
			continue;
		if (records.name_count >= NAMES / 2)
			return define_name(name, bytes);
		records.name_count++;
		records.names[at].hash = hash;
		records.names[at].id = define_name(name, bytes);
		return records.names[at].id;
	}
}

static uint32_t queue_id(uint32_t device, uint32_t context, uint32_t stream)
{
	uint32_t at = 0, id;

	for (; at < QUEUES && records.queues[at].id; at++)
		if (records.queues[at].stream == stream && records.queues[at].device == device &&
		    records.queues[at].context == context)
			return records.queues[at].id;
	id = ++records.queue_ids;
	if (at < QUEUES) {
		records.queues[at].device = device;
		records.queues[at].context = context;
		records.queues[at].stream = stream;
		records.queues[at].id = id;
	}
	trace_define(records.outs[0], TRACE_RECORD_GPU_QUEUE,
		     &(struct record_GPU_QUEUE){ id, device, context, stream });
	return id;
}

/* ---------------------------------------------------------------- events */

struct when {
	struct trace_buffer *out;
	uint64_t time, early, duration;
};

/* False: it has not ended, which only a forced flush gives. */
static bool when(struct trace_buffer *out, uint64_t start_ns, uint64_t end_ns, struct when *when)
{
	uint64_t start = units_of(start_ns), end = units_of(end_ns), last;

	if (!start_ns || end_ns < start_ns) {
		records.unfinished++;
		return false;
	}
	if (!out) {
		trace_file_lost(&tare_process.file, 1);
		return false;
	}
	last = out->last_time;
	when->out = out;
	when->time = start > last ? start : last;
	when->early = when->time - start;
	when->duration = end > start ? end - start : 0;
	return true;
}

static void put_work(struct trace_buffer *out, enum trace_gpu_work what, uint64_t start,
		     uint64_t end, uint32_t correlation, uint32_t queue, uint64_t bytes,
		     uint64_t detail)
{
	struct when w;

	if (when(out, start, end, &w))
		trace_put(w.out, w.time, GPU_WORK, what, w.early, w.duration, correlation, queue,
			  bytes, detail);
}

static void put_kernel(const struct cupti_kernel *k)
{
	struct when w;

	if (when(out_of(k->device), k->start, k->end, &w))
		trace_put(w.out, w.time, GPU_KERNEL, name_id(k->name), w.early, w.duration,
			  k->correlation, queue_id(k->device, k->context, k->stream), k->graph);
}

/* As cudaMemcpyKind: 0 host to host, 1 to device, 2 to host, 3 within and between devices. */
static unsigned copy_direction(const struct cupti_memcpy *c)
{
	static const uint8_t directions[] = { 4, 1, 2, 1, 2, 3, 3, 3, 3, 0, 3 };

	return c->copy_kind < sizeof(directions) ? directions[c->copy_kind] : 4;
}

static void put_copy(const struct cupti_memcpy *c)
{
	put_work(out_of(c->device), TRACE_GPU_COPY, c->start, c->end,
		 c->kind == CUPTI_MEMCPY ? c->correlation : c->peer_correlation,
		 queue_id(c->device, c->context, c->stream), c->bytes,
		 copy_direction(c) | (c->source_kind & 15u) << 4 |
			 (c->destination_kind & 15u) << 8);
}

static void put_record(const void *record)
{
	const struct cupti_memset *s = record;
	const struct cupti_synchronization *y = record;
	const struct cupti_graph_trace *g = record;
	const struct cupti_overhead *o = record;

	switch (*(const uint32_t *)record) {
	case CUPTI_KERNEL:
	case CUPTI_CONCURRENT_KERNEL: put_kernel(record); break;
	case CUPTI_MEMCPY:
	case CUPTI_MEMCPY2: put_copy(record); break;
	case CUPTI_MEMSET:
		put_work(out_of(s->device), TRACE_GPU_SET, s->start, s->end, s->correlation,
			 queue_id(s->device, s->context, s->stream), s->bytes, 0);
		break;
	case CUPTI_SYNCHRONIZATION:
		put_work(records.outs[0], TRACE_GPU_SYNC, y->start, y->end, y->correlation, 0, 0,
			 y->type);
		break;
	case CUPTI_GRAPH_TRACE:
		put_work(out_of(g->device), TRACE_GPU_GRAPH, g->start, g->end, g->correlation,
			 queue_id(g->device, g->context, g->stream), 0, g->graph);
		break;
	case CUPTI_OVERHEAD:
		put_work(records.outs[0], TRACE_GPU_OVERHEAD, o->start, o->end, 0, 0, 0,
			 o->overhead_kind);
		break;
	}
}

void gpu_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			  size_t used)
{
	uint8_t state = tare_tls.state;
	void *record = NULL;

	(void)context;
	(void)stream;
	(void)bytes;
	if (!buffer)
		return;
	tare_tls.state = TARE_INSIDE;
	lock();
	if (records.outs[0] && !records.outs[0]->stopped && gpu.state != GPU_OFF) {
		clock_look();
		while (used && gpu.next(buffer, used, &record) == CUPTI_OK)
			put_record(record);
	}
	unlock();
	buffer_free(buffer);
	tare_tls.state = state;
}

void gpu_records_mark(enum trace_gpu_work what)
{
	lock();
	uint64_t now = tare_now(), last = records.outs[0]->last_time;

	trace_put(records.outs[0], now > last ? now : last, GPU_WORK, what, 0, 0, 0, 0, 0, 0);
	unlock();
}

static void lost(uint64_t count, const char *reason)
{
	if (!count)
		return;
	trace_file_lost(records.outs[0]->file, count);
	trace_define(records.outs[0], TRACE_RECORD_LOST,
		     &(struct record_LOST){ .thread = records.outs[0]->thread,
					    .events = count,
					    .reason = { reason, (uint32_t)strlen(reason) } });
}

void gpu_records_dropped(void)
{
	size_t dropped = 0;

	gpu.dropped(NULL, 0, &dropped);
	lock();
	if (records.outs[0] && !records.outs[0]->stopped) {
		lost(dropped, "CUPTI had no room for them");
		lost(records.unfinished, "devices had not finished them");
	}
	records.unfinished = 0;
	unlock();
}
