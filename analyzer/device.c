/* device.c: see device.h. */
#include "analyzer/device.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/context.h"
#include "analyzer/model.h"

#define LAUNCHES     (1u << 16) /* that may be on their way at once */
#define LATE_MAX     512u       /* that are put in order */
#define BUCKETS      (1u << 14)
#define WINDOWS_MAX  (1u << 16)
#define GRAPHS_MAX   (1u << 16)
#define BUCKET_UNITS (1u << 14) /* some 20 µs at first; twice that each time the run is longer */

struct device_launch {
	uint64_t time, wait_end;
	uint32_t correlation, row, finding;
	bool copy, followed;
};

/* What ran on a device. */
struct item {
	uint64_t start, end;
	uint32_t correlation;
	uint32_t kind; /* ITEM_ */
};

enum { ITEM_KERNEL, ITEM_COPY, ITEM_SET, ITEM_GRAPH };

/* Sums of a stretch of time: of each the moments or the items that lie in it. */
struct bucket {
	double busy, kernel, idle[DEVICE_CAUSE_COUNT], in_flight, delay, counts[4];
};

struct device_line {
	struct item heap[LATE_MAX]; /* the earliest first */
	uint32_t heap_count;
	uint64_t origin, width;                 /* of the buckets */
	uint64_t busy_end, kernel_end, settled; /* settled: the last start */
	uint64_t beyond; /* at the end: of the last bucket, what lies behind all that was recorded */
	struct bucket buckets[BUCKETS];
};

/* ---------------------------------------------------------------- sums by time */

static void widen(struct device_line *line)
{
	for (uint32_t i = 0; i < BUCKETS / 2; i++) {
		const double *a = (const double *)&line->buckets[2 * i],
			     *b = (const double *)&line->buckets[2 * i + 1];
		struct bucket sum;

		for (unsigned j = 0; j < sizeof(sum) / sizeof(double); j++)
			((double *)&sum)[j] = a[j] + b[j];
		line->buckets[i] = sum;
	}
	memset(&line->buckets[BUCKETS / 2], 0, sizeof(line->buckets) / 2);
	line->width *= 2;
}

static struct bucket *bucket_at(struct device_line *line, uint64_t time)
{
	uint64_t since = time > line->origin ? time - line->origin : 0;

	while (since / line->width >= BUCKETS)
		widen(line);
	return &line->buckets[since / line->width];
}

/* Adds the length of an interval to a member, `at` doubles from the start of each bucket. */
static void add_interval(struct device_line *line, unsigned at, uint64_t from, uint64_t to)
{
	if (from < line->origin)
		from = line->origin;
	if (to <= from)
		return;
	bucket_at(line, to);
	while (from < to) {
		uint64_t number = (from - line->origin) / line->width;
		uint64_t end = line->origin + (number + 1) * line->width;

		end = end < to ? end : to;
		((double *)&line->buckets[number])[at] += (double)(end - from);
		from = end;
	}
}

#define MEMBER(name) (offsetof(struct bucket, name) / sizeof(double))

static void add_window(const struct device_line *line, uint64_t from, uint64_t to,
		       struct bucket *sum)
{
	from = from > line->origin ? from - line->origin : 0;
	to = to > line->origin ? to - line->origin : 0;
	for (uint64_t i = from / line->width; i < BUCKETS && i * line->width < to; i++) {
		uint64_t start = i * line->width, end = start + line->width;
		uint64_t first = from > start ? from : start, last = to < end ? to : end;
		double part = (double)(last - first) / (double)line->width;

		for (unsigned j = 0; j < sizeof(*sum) / sizeof(double); j++)
			((double *)sum)[j] += ((const double *)&line->buckets[i])[j] * part;
	}
}

/* ---------------------------------------------------------------- busy and idle */

static unsigned idle_member(enum device_cause cause)
{
	return MEMBER(idle) + (unsigned)cause;
}

/* The device did nothing from `from` until this item began. */
static void add_idle(struct model *model, struct device_line *line, uint64_t from,
		     const struct item *item, const struct device_launch *call)
{
	enum device_cause cause = DEVICE_IDLE_host;

	if (!call) {
		add_interval(line, idle_member(DEVICE_IDLE_unknown), from, item->start);
		return;
	}
	/* The host had waited for what ran before, and could not launch any earlier. */
	if (call->wait_end >= from && call->wait_end <= call->time) {
		cause = call->copy ? DEVICE_IDLE_copy : DEVICE_IDLE_synchronise;
		if (call->finding && call->finding < model->findings.count)
			model->findings.rows[call->finding].device_gap += item->start - from;
	}
	if (call->time > from) {
		uint64_t launch = call->time < item->start ? call->time : item->start;

		add_interval(line, idle_member(cause), from, launch);
		from = launch;
	}
	add_interval(line, idle_member(DEVICE_IDLE_launch), from, item->start);
}

static void add_to_row(struct devices *devices, uint32_t at, const struct item *item,
		       uint64_t launch)
{
	struct device_row *row;

	memory_grow(devices->rows, at, devices->row_room);
	row = &devices->rows[at];
	row->works++;
	row->sum += item->end - item->start;
	if (item->kind == ITEM_KERNEL) {
		row->kernels++;
		histogram_add(&row->delays, item->start > launch ? item->start - launch : 0);
	}
}

/* The call that an item comes of. Clocks may tell that it began a little later: it has been read by now. */
static struct device_launch *call_of(struct devices *devices, const struct item *item)
{
	struct device_launch *call =
		devices->launches ? &devices->launches[item->correlation % LAUNCHES] : NULL;

	if (!call || !item->correlation || call->correlation != item->correlation) {
		devices->unmatched++;
		return NULL;
	}
	devices->matched += !call->followed;
	call->followed = true;
	if (call->row)
		add_to_row(devices, call->row, item, call->time);
	return call;
}

static void settle(struct model *model, struct device_line *line, const struct item *item)
{
	const struct device_launch *call = call_of(&model->devices, item);
	struct bucket *bucket;

	model->devices.late += item->start < line->settled;
	line->settled = item->start > line->settled ? item->start : line->settled;
	if (item->start > line->busy_end) {
		add_idle(model, line, line->busy_end, item, call);
		line->busy_end = item->start;
	}
	if (item->end > line->busy_end) {
		add_interval(line, MEMBER(busy), line->busy_end, item->end);
		line->busy_end = item->end;
	}
	if (item->kind == ITEM_KERNEL || item->kind == ITEM_GRAPH) {
		uint64_t from = item->start > line->kernel_end ? item->start : line->kernel_end;

		add_interval(line, MEMBER(kernel), from, item->end);
		if (item->end > line->kernel_end)
			line->kernel_end = item->end;
	}
	bucket = bucket_at(line, item->start);
	bucket->counts[item->kind]++;
	if (!call)
		return;
	if (item->end > call->time)
		bucket->in_flight += (double)(item->end - call->time);
	if (item->kind == ITEM_KERNEL && item->start > call->time)
		bucket->delay += (double)(item->start - call->time);
}

static bool before(const struct item *a, const struct item *b)
{
	return a->start < b->start;
}

static struct item heap_take(struct device_line *line)
{
	struct item first = line->heap[0], last = line->heap[--line->heap_count];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < line->heap_count) {
		if (child + 1 < line->heap_count &&
		    before(&line->heap[child + 1], &line->heap[child]))
			child++;
		if (!before(&line->heap[child], &last))
			break;
		line->heap[at] = line->heap[child];
		at = child;
	}
	line->heap[at] = last;
	return first;
}

static void heap_put(struct device_line *line, const struct item *item)
{
	uint32_t at = line->heap_count++;

	while (at && before(item, &line->heap[(at - 1) / 2])) {
		line->heap[at] = line->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	line->heap[at] = *item;
}

static struct device_line *line_of(struct model *model, uint64_t queue)
{
	uint32_t index = id_map_get(&model->definitions.queue_ids, queue);
	uint32_t device = index ? model->definitions.queues[index].device : 0;
	struct devices *devices = &model->devices;
	struct device_line **line = &devices->lines[device < DEVICES_MAX ? device : 0];

	if (!*line) {
		*line = memory_zero(1, sizeof(**line));
		(*line)->origin = devices->begin ? devices->begin : model->open;
		(*line)->busy_end = (*line)->kernel_end = (*line)->origin;
		(*line)->width = BUCKET_UNITS;
	}
	return *line;
}

/* ---------------------------------------------------------------- calls */

void device_called(struct model *model, struct model_thread *thread, uint64_t correlation,
		   uint64_t now)
{
	struct devices *devices = &model->devices;

	if (!devices->launches)
		devices->launches = memory_zero(LAUNCHES, sizeof(*devices->launches));
	if (!thread->wait.capturing)
		devices->calls++;
	devices->launches[correlation % LAUNCHES] = (struct device_launch){
		.time = now,
		.correlation = (uint32_t)correlation,
		.row = context_row(model, thread),
		.wait_end = thread->device_wait_end,
		.finding = thread->device_finding,
		.copy = thread->device_wait_copy,
	};
}

void device_waited(struct model_thread *thread, bool copy, uint32_t finding, uint64_t now)
{
	thread->device_wait_end = now;
	thread->device_wait_copy = copy;
	thread->device_finding = finding;
}

void device_window(struct model *model, uint32_t node, uint64_t start, uint64_t end)
{
	struct devices *devices = &model->devices;

	if (!device_known(devices) || devices->window_count >= WINDOWS_MAX || end <= start)
		return;
	memory_grow(devices->windows, devices->window_count, devices->window_room);
	devices->windows[devices->window_count++] = (struct device_window){ node, start, end };
}

/* ---------------------------------------------------------------- records */

static void add_name(struct device_name **names, uint32_t *room, uint32_t at, uint64_t duration)
{
	memory_grow(*names, at, *room);
	(*names)[at].count++;
	(*names)[at].sum += duration;
	histogram_add(&(*names)[at].durations, duration);
}

static void add_item(struct model *model, const struct trace_event *event, uint8_t kind)
{
	uint64_t early = event->fields[1];
	struct item item = {
		.start = early < event->time ? event->time - early : 0,
		.correlation = (uint32_t)event->fields[3],
		.kind = kind,
	};
	struct device_line *line = line_of(model, event->fields[4]);

	item.end = item.start + event->fields[2];
	if (!model_time_is_sane(model, item.start) || !model_time_is_sane(model, item.end))
		return;
	if (line->heap_count == LATE_MAX) {
		struct item first = heap_take(line);

		settle(model, line, &first);
	}
	heap_put(line, &item);
}

static void add_work(struct model *model, const struct trace_event *event)
{
	struct devices *devices = &model->devices;

	switch (event->fields[0]) {
	case TRACE_GPU_BEGIN: devices->begin = devices->begin ? devices->begin : event->time; break;
	case TRACE_GPU_END: devices->end = event->time; break;
	case TRACE_GPU_COPY: add_item(model, event, ITEM_COPY); break;
	case TRACE_GPU_SET: add_item(model, event, ITEM_SET); break;
	case TRACE_GPU_GRAPH:
		add_item(model, event, ITEM_GRAPH);
		if (event->fields[6] < GRAPHS_MAX)
			add_name(&devices->graphs, &devices->graph_room, (uint32_t)event->fields[6],
				 event->fields[2]);
		break;
	case TRACE_GPU_OVERHEAD:
		devices->overhead += event->fields[2];
		devices->overheads++;
		break;
	}
}

void device_batch(struct model *model, const struct trace_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct trace_event *event = &batch->events[i];

		if (event->code == TRACE_GPU_WORK) {
			add_work(model, event);
		} else if (event->code == TRACE_GPU_KERNEL) {
			add_item(model, event, ITEM_KERNEL);
			add_name(&model->devices.kernels, &model->devices.kernel_room,
				 id_map_get(&model->definitions.string_ids, event->fields[0]),
				 event->fields[2]);
		}
	}
}

/* ---------------------------------------------------------------- the end */

void device_finish(struct model *model)
{
	struct devices *devices = &model->devices;

	if (!devices->end || devices->end > model->end)
		devices->end = model->end;
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		struct device_line *line = devices->lines[i];

		while (line && line->heap_count) {
			struct item first = heap_take(line);

			settle(model, line, &first);
		}
		/* The last of a process that was killed. */
		if (line && line->busy_end > devices->end)
			devices->end = line->busy_end;
	}
	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		struct device_line *line = devices->lines[i];
		uint64_t end;

		if (!line)
			continue;
		/* Nothing came any more. To the end of the bucket, so that each holds what it is long. */
		bucket_at(line, devices->end);
		end = line->origin +
		      ((devices->end - line->origin) / line->width + 1) * line->width;
		add_interval(line, idle_member(DEVICE_IDLE_host), line->busy_end, end);
		line->beyond = end - devices->end;
	}
	/* Where the device was seen all along, what it tells counts. */
	if (!device_known(devices) || definitions_layer_off(&model->definitions, "gpu"))
		return;
	for (uint32_t i = 1; i < model->findings.count; i++)
		model->findings.rows[i].gap = model->findings.rows[i].device_gap;
}

bool device_times_of(const struct model *model, unsigned device, uint32_t node,
		     struct device_times *times)
{
	const struct devices *devices = &model->devices;
	const struct device_line *line = devices->lines[device];
	struct bucket sum = { 0 };

	*times = (struct device_times){ 0 };
	if (!line)
		return false;
	if (node == LOOP_NONE) {
		times->wall = (double)(devices->end - devices->begin);
		add_window(line, line->origin, line->origin + BUCKETS * line->width, &sum);
		sum.idle[DEVICE_IDLE_host] -= (double)line->beyond;
	}
	for (uint32_t i = 0; node != LOOP_NONE && i < devices->window_count; i++) {
		const struct device_window *window = &devices->windows[i];

		if (window->node != node)
			continue;
		if (window->start < devices->begin || window->end > devices->end)
			return false;
		times->wall += (double)(window->end - window->start);
		add_window(line, window->start, window->end, &sum);
	}
	times->kernel = sum.kernel;
	times->copy = sum.busy - sum.kernel;
	memcpy(times->idle, sum.idle, sizeof(times->idle));
	times->in_flight = sum.in_flight;
	times->delay = sum.delay;
	times->kernels = sum.counts[ITEM_KERNEL];
	times->copies = sum.counts[ITEM_COPY];
	times->sets = sum.counts[ITEM_SET];
	times->graphs = sum.counts[ITEM_GRAPH];
	return times->wall > 0;
}

static void free_names(struct device_name *names, uint32_t room)
{
	for (uint32_t i = 0; i < room; i++)
		histogram_free(&names[i].durations);
	free(names);
}

void device_free(struct devices *devices)
{
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		free(devices->lines[i]);
	for (uint32_t i = 0; i < devices->row_room; i++)
		histogram_free(&devices->rows[i].delays);
	free_names(devices->kernels, devices->kernel_room);
	free_names(devices->graphs, devices->graph_room);
	free(devices->rows);
	free(devices->windows);
	free(devices->launches);
	*devices = (struct devices){ 0 };
}
