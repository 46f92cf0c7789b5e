/*
 * Records of the simulated CUPTI: how they are laid out, and their way to the client's buffers.
 *
 * Each thread fills buffers of its own with what its calls tell, each device others with what has been
 * done. A thread of CUPTI's delivers those that are full; a flush the rest, on the caller's thread. A
 * device's record is written when the work has ended; TARE_SIM_CUPTI_ORDER=reverse turns the order of
 * those that are written together, TARE_SIM_CUPTI_DROP=N drops each Nth.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cupti_sim.h"

#if SIM_CUDA_MAJOR == 12
typedef CUpti_ActivityKernel9 record_kernel;
typedef CUpti_ActivityMemcpy5 record_copy;
typedef CUpti_ActivitySynchronization record_sync;
typedef CUpti_ActivityGraphTrace record_graph;
typedef CUpti_ActivityOverhead2 record_overhead;
#else
typedef CUpti_ActivityKernel10 record_kernel;
typedef CUpti_ActivityMemcpy6 record_copy;
typedef CUpti_ActivitySynchronization2 record_sync;
typedef CUpti_ActivityGraphTrace2 record_graph;
typedef CUpti_ActivityOverhead3 record_overhead;
#endif
typedef CUpti_ActivityMemset4 record_set;

enum { LANES_MAX = 512, DEVICES_MAX = 16, WORKER_NS = 20000000 };

/* Who fills buffers: a thread or a device. */
struct lane {
	uint8_t *buffer;
	size_t size, used;
};

struct full {
	uint8_t *buffer;
	size_t size, used;
};

struct pending {
	uint64_t end; /* 0: taken */
	uint32_t bytes;
	uint8_t record[CUPTI_RECORD_MAX];
};

static struct lane lanes[LANES_MAX], devices[DEVICES_MAX];
static unsigned lane_count;
static _Thread_local struct lane *thread_lane;
static struct pending *pending[DEVICES_MAX];
static size_t pending_count[DEVICES_MAX], pending_room[DEVICES_MAX];
static struct full *full;
static size_t full_count, full_room;
static pthread_mutex_t deliver_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static pthread_cond_t buffer_full = PTHREAD_COND_INITIALIZER;
static uint64_t device_records;

size_t cupti_record_bytes(unsigned kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(record_kernel);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(record_copy);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(record_set);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(record_sync);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(record_graph);
	case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(record_overhead);
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	default: return 0;
	}
}

/* ---- buffers ---- */

/* With the lock held. */
static void retire(struct lane *lane)
{
	if (!lane->buffer)
		return;
	if (full_count == full_room) {
		full_room = full_room ? full_room * 2 : 16;
		full = realloc(full, full_room * sizeof(*full));
	}
	full[full_count++] = (struct full){ lane->buffer, lane->size, lane->used };
	lane->buffer = NULL;
	pthread_cond_signal(&buffer_full);
}

static void add(struct lane *lane, const void *record, size_t bytes)
{
	size_t most = 0;

	if (lane->buffer && lane->used + bytes > lane->size)
		retire(lane);
	if (!lane->buffer && cupti.requested) {
		lane->used = lane->size = 0;
		cupti.requested(&lane->buffer, &lane->size, &most);
	}
	if (!lane->buffer || lane->used + bytes > lane->size) {
		cupti.dropped++;
		return;
	}
	memcpy(lane->buffer + lane->used, record, bytes);
	lane->used += bytes;
}

void cupti_add_host_record(const void *record, size_t bytes)
{
	if (!thread_lane)
		thread_lane = &lanes[lane_count < LANES_MAX ? lane_count++ : LANES_MAX - 1];
	add(thread_lane, record, bytes);
}

/* With the deliver lock held, and no other. */
static void deliver(void)
{
	for (;;) {
		CUpti_BuffersCallbackCompleteFunc completed;
		struct full one;

		pthread_mutex_lock(&cupti.lock);
		bool any = full_count > 0;
		if (any) {
			one = full[0];
			memmove(full, full + 1, --full_count * sizeof(*full));
		}
		completed = cupti.completed;
		pthread_mutex_unlock(&cupti.lock);
		if (!any)
			return;
		if (completed)
			completed(NULL, 0, one.buffer, one.size, one.used);
	}
}

/* ---- what devices do ---- */

static unsigned memory_kind(enum sim_memory memory)
{
	switch (memory) {
	case SIM_MEM_HOST: return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
	case SIM_MEM_DEVICE: return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	case SIM_MEM_MANAGED: return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
	default: return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
	}
}

static unsigned copy_kind(int column)
{
	switch (column) {
	case SIM_H2H: return CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
	case SIM_H2D: return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
	case SIM_D2H: return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
	case SIM_D2D: return CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
	default: return CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
	}
}

/* What records of every kind hold. */
#define WHEN_AND_WHERE(a)                                                                          \
	.start = (a)->start, .end = (a)->end, .contextId = (uint32_t)(a)->device + 1,              \
	.correlationId = (a)->correlation

/* Those of one piece of work of a stream. */
#define STREAM_WORK(a)                                                                             \
	WHEN_AND_WHERE(a), .deviceId = (uint32_t)(a)->device, .streamId = (a)->stream,             \
			   .graphNodeId = (a)->node, .graphId = (a)->graph

static uint32_t make_kernel(const struct sim_activity *a, void *out)
{
	bool concurrent = cupti.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL];

	if (!concurrent && !cupti.kinds[CUPTI_ACTIVITY_KIND_KERNEL])
		return 0;
	*(record_kernel *)out = (record_kernel){
		.kind = concurrent ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL :
				     CUPTI_ACTIVITY_KIND_KERNEL,
		STREAM_WORK(a),
		.completed = a->end,
		.gridX = 1,
		.gridY = 1,
		.gridZ = 1,
		.blockX = 128,
		.blockY = 1,
		.blockZ = 1,
		.name = a->name,
	};
	return sizeof(record_kernel);
}

static uint32_t make_copy(const struct sim_activity *a, void *out)
{
	if (!cupti.kinds[CUPTI_ACTIVITY_KIND_MEMCPY])
		return 0;
	*(record_copy *)out = (record_copy){
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		STREAM_WORK(a),
		.copyKind = (uint8_t)copy_kind(a->column),
		.srcKind = (uint8_t)memory_kind(a->from),
		.dstKind = (uint8_t)memory_kind(a->to),
		.flags = a->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = a->bytes,
	};
	return sizeof(record_copy);
}

static uint32_t make_set(const struct sim_activity *a, void *out)
{
	if (!cupti.kinds[CUPTI_ACTIVITY_KIND_MEMSET])
		return 0;
	*(record_set *)out = (record_set){
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		STREAM_WORK(a),
		.value = a->value,
		.bytes = a->bytes,
		.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC,
		.memoryKind = (uint16_t)memory_kind(a->to),
	};
	return sizeof(record_set);
}

static uint32_t make_graph(const struct sim_activity *a, void *out)
{
	if (!cupti.kinds[CUPTI_ACTIVITY_KIND_GRAPH_TRACE])
		return 0;
	*(record_graph *)out = (record_graph){
		.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		WHEN_AND_WHERE(a),
		.deviceId = (uint32_t)a->device,
		.graphId = a->graph,
		.streamId = a->stream,
	};
	return sizeof(record_graph);
}

static uint32_t make_sync(const struct sim_activity *a, void *out)
{
	if (!cupti.kinds[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION])
		return 0;
	*(record_sync *)out = (record_sync){
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		WHEN_AND_WHERE(a),
		.type = (CUpti_ActivitySynchronizationType)a->sync,
		.streamId = a->stream ? a->stream : (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE,
		.cudaEventId = (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE,
	};
	return sizeof(record_sync);
}

static uint32_t make_record(const struct sim_activity *a, void *out)
{
	bool grouped = a->node && cupti.kinds[CUPTI_ACTIVITY_KIND_GRAPH_TRACE];

	if (grouped)
		return 0;
	switch (a->kind) {
	case SIM_ACTIVITY_KERNEL: return make_kernel(a, out);
	case SIM_ACTIVITY_COPY: return make_copy(a, out);
	case SIM_ACTIVITY_SET: return make_set(a, out);
	case SIM_ACTIVITY_GRAPH: return make_graph(a, out);
	case SIM_ACTIVITY_SYNC: return make_sync(a, out);
	}
	return 0;
}

/* With the core's lock held: this must not wait for anything else. */
void cupti_activity(const struct sim_activity *a)
{
	int d = a->device % DEVICES_MAX;
	struct pending *p;

	pthread_mutex_lock(&pending_lock);
	if (pending_count[d] == pending_room[d]) {
		pending_room[d] = pending_room[d] ? pending_room[d] * 2 : 1024;
		pending[d] = realloc(pending[d], pending_room[d] * sizeof(*p));
	}
	p = &pending[d][pending_count[d]];
	p->end = a->end;
	p->bytes = make_record(a, p->record);
	pending_count[d] += p->bytes > 0;
	pthread_mutex_unlock(&pending_lock);
}

/* ---- from the device's clock to the client's ---- */

struct clock_pair {
	uint64_t device, client;
};

static struct clock_pair first_pair;

static struct clock_pair read_clocks(void)
{
	uint64_t before = sim_now(), client = cupti_stamp();

	return (struct clock_pair){ before + (sim_now() - before) / 2, client };
}

void cupti_clock_changed(void)
{
	first_pair = read_clocks();
}

static uint64_t convert(uint64_t ns, const struct clock_pair *now)
{
	int64_t offset = (int64_t)(now->client - now->device);
	int64_t drift = offset - (int64_t)(first_pair.client - first_pair.device);

	if (llabs(offset) < 5000)
		return ns; /* the same clock */
	if (llabs(drift) < 5000)
		return ns + (uint64_t)offset;
	double rate = (double)(now->client - first_pair.client) /
		      (double)(now->device - first_pair.device);
	return now->client + (uint64_t)(int64_t)((double)(int64_t)(ns - now->device) * rate);
}

static void convert_field(void *record, size_t at, const struct clock_pair *now, bool complete)
{
	uint64_t *field = (uint64_t *)((char *)record + at);

	*field = complete ? convert(*field, now) : 0;
}

static void convert_times(void *record, const struct clock_pair *now, bool complete)
{
	size_t start = 8;

	switch (((CUpti_Activity *)record)->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		start = offsetof(record_kernel, start);
		convert_field(record, offsetof(record_kernel, completed), now, complete);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY: start = offsetof(record_copy, start); break;
	case CUPTI_ACTIVITY_KIND_MEMSET: start = offsetof(record_set, start); break;
	default: break;
	}
	convert_field(record, start, now, complete);
	convert_field(record, start + 8, now, complete);
}

static bool dropped(void)
{
	static long each = -1;

	if (each < 0) {
		const char *text = getenv("TARE_SIM_CUPTI_DROP");

		each = text ? atol(text) : 0;
	}
	return each > 0 && ++device_records % (uint64_t)each == 0;
}

static int by_end(const void *a, const void *b)
{
	const struct pending *x = *(const struct pending *const *)a,
			     *y = *(const struct pending *const *)b;

	return x->end < y->end ? -1 : x->end > y->end;
}

/* With the lock held: what has ended on a device goes to its buffer. */
static void collect(int d, bool forced, const struct clock_pair *now)
{
	const char *order = getenv("TARE_SIM_CUPTI_ORDER");
	bool reverse = order && !strcmp(order, "reverse");
	struct pending **ready;
	size_t count = 0, left = 0;

	pthread_mutex_lock(&pending_lock);
	ready = malloc((pending_count[d] + 1) * sizeof(*ready));
	for (size_t i = 0; i < pending_count[d]; i++)
		if (forced || pending[d][i].end <= now->device)
			ready[count++] = &pending[d][i];
	qsort(ready, count, sizeof(*ready), by_end);
	for (size_t i = 0; i < count; i++) {
		struct pending *p = ready[reverse ? count - 1 - i : i];

		convert_times(p->record, now, p->end <= now->device);
		if (dropped())
			cupti.dropped++;
		else
			add(&devices[d], p->record, p->bytes);
		p->bytes = 0;
	}
	for (size_t i = 0; i < pending_count[d]; i++)
		if (pending[d][i].bytes)
			pending[d][left++] = pending[d][i];
	pending_count[d] = left;
	pthread_mutex_unlock(&pending_lock);
	free(ready);
}

static void add_overhead(uint64_t start)
{
	record_overhead o = {
		.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
		.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
		.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
		.start = start,
		.end = cupti_stamp(),
	};

	o.objectId.pt.processId = (uint32_t)getpid();
	o.objectId.pt.threadId = (uint32_t)pthread_self();
	if (cupti.kinds[CUPTI_ACTIVITY_KIND_OVERHEAD])
		cupti_add_host_record(&o, sizeof(o));
}

void cupti_flush(bool forced)
{
	uint64_t start = cupti_stamp();
	struct clock_pair now = read_clocks();

	pthread_mutex_lock(&deliver_lock);
	pthread_mutex_lock(&cupti.lock);
	for (int d = 0; d < DEVICES_MAX; d++)
		collect(d, forced, &now);
	add_overhead(start);
	for (unsigned i = 0; i < lane_count; i++)
		retire(&lanes[i]);
	for (int d = 0; d < DEVICES_MAX; d++)
		retire(&devices[d]);
	pthread_mutex_unlock(&cupti.lock);
	deliver();
	pthread_mutex_unlock(&deliver_lock);
}

/* ---- CUPTI's thread ---- */

static void *worker(void *unused)
{
	for (;;) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WORKER_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&cupti.lock);
		if (!full_count)
			pthread_cond_timedwait(&buffer_full, &cupti.lock, &until);
		pthread_mutex_unlock(&cupti.lock);
		pthread_mutex_lock(&deliver_lock);
		struct clock_pair now = read_clocks();
		pthread_mutex_lock(&cupti.lock);
		for (int d = 0; d < DEVICES_MAX; d++)
			collect(d, false, &now);
		pthread_mutex_unlock(&cupti.lock);
		deliver();
		pthread_mutex_unlock(&deliver_lock);
	}
	return unused;
}

static void start_worker(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, worker, NULL))
		pthread_detach(thread);
}

void cupti_worker_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_worker);
}
