/* device_view.c: see device_view.h. */
#include "analyzer/device_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/mainloop.h"
#include "analyzer/model.h"
#include "analyzer/symbols.h"
#include "analyzer/table.h"

#define BUSY_BOUND  0.8 /* from that share on the device is what is slow */
#define BAR_WIDTH   20
#define KERNEL_ROWS 10

/* What is said of one device. Per pass, or `passes` is 1. */
struct summary {
	struct device_times times;
	double passes;
	double wait; /* of the host, clock units; NAN: not known */
	bool in_loop;
};

static bool summarise(struct model *model, unsigned device, struct summary *summary)
{
	const struct loop_node *node = &model->loops.nodes[model->main_loop];
	struct ledger ledger;

	*summary = (struct summary){ .passes = 1, .wait = NAN };
	if (model->main_loop && node->passes_known && node->passes &&
	    device_times_of(model, device, model->main_loop, &summary->times)) {
		summary->passes = (double)node->passes;
		summary->in_loop = true;
		if (main_loop_ledger(model, model->main_loop, &ledger))
			summary->wait = ledger.lines[LINE_wait];
		return true;
	}
	return device_times_of(model, device, LOOP_NONE, &summary->times);
}

static double busy_of(const struct device_times *times)
{
	return times->kernel + times->copy;
}

/* ---------------------------------------------------------------- JSON */

static void set_ns(json_t *json, const char *key, const struct model *model, double units)
{
	json_object_set_new(json, key, output_number(model_ns(model, units)));
}

static json_t *device_json(const struct model *model, unsigned device, const struct summary *s)
{
	const struct device_times *t = &s->times;
	double busy = busy_of(t), idle = 0, host = t->wall - s->wait;
	json_t *json = json_object(), *causes = json_object();

	json_object_set_new(json, "device", json_integer(device));
	json_object_set_new(json, "scope", json_string(s->in_loop ? "main loop" : "recorded"));
	json_object_set_new(json, "passes",
			    s->in_loop ? json_integer((json_int_t)s->passes) : json_null());
	set_ns(json, "wall_ns", model, t->wall);
	set_ns(json, "busy_ns", model, busy);
	set_ns(json, "kernel_ns", model, t->kernel);
	set_ns(json, "copy_ns", model, t->copy);
#define CAUSE_(name, title)                                                                        \
	idle += t->idle[DEVICE_IDLE_##name];                                                       \
	set_ns(causes, #name "_ns", model, t->idle[DEVICE_IDLE_##name]);
	DEVICE_CAUSES(CAUSE_)
#undef CAUSE_
	set_ns(json, "idle_ns", model, idle);
	json_object_set_new(json, "idle", causes);
	json_object_set_new(json, "active", output_number(busy / t->wall));
	json_object_set_new(json, "bound",
			    json_string(busy >= BUSY_BOUND * t->wall ? "device" : "host"));
	json_object_set_new(json, "queue_depth", output_number(t->in_flight / t->wall));
	set_ns(json, "tklqt_ns", model, t->delay);
	json_object_set_new(json, "balance", output_number(busy / (busy + host)));
	json_object_set_new(json, "without_host", output_number(busy > 0 ? t->wall / busy : NAN));
	json_object_set_new(json, "without_device", output_number(t->wall / host));
	json_object_set_new(json, "kernels", output_number(round(t->kernels)));
	json_object_set_new(json, "copies", output_number(round(t->copies)));
	json_object_set_new(json, "sets", output_number(round(t->sets)));
	json_object_set_new(json, "graphs", output_number(round(t->graphs)));
	return json;
}

json_t *devices_json(struct model *model)
{
	json_t *all = json_array();
	struct summary summary;

	if (!device_known(&model->devices)) {
		json_decref(all);
		return json_null();
	}
	for (unsigned i = 0; i < DEVICES_MAX; i++)
		if (summarise(model, i, &summary))
			json_array_append_new(all, device_json(model, i, &summary));
	return all;
}

/* ---------------------------------------------------------------- kernels */

enum { KERNEL_NAME, KERNEL_COUNT, KERNEL_MEDIAN, KERNEL_TOTAL, KERNEL_SHARE, KERNEL_COLUMNS };

static const struct column kernel_columns[] = {
	[KERNEL_NAME] = { "name", "", COLUMN_TEXT, 0, false },
	[KERNEL_COUNT] = { "count", "times", COLUMN_COUNT, 0, false },
	[KERNEL_MEDIAN] = { "median_ns", "median", COLUMN_TIME, 0, false },
	[KERNEL_TOTAL] = { "total_ns", "total", COLUMN_TIME, 0, false },
	[KERNEL_SHARE] = { "share", "share", COLUMN_PERCENT, 0, false },
};

struct kernel {
	const struct device_name *name;
	uint32_t at;
	bool graph;
};

static int by_sum(const void *a, const void *b)
{
	const struct device_name *x = ((const struct kernel *)a)->name,
				 *y = ((const struct kernel *)b)->name;

	return x->sum > y->sum ? -1 : x->sum < y->sum;
}

/* Without what template arguments and parameters say, where it is long: "void at::native::reduce_kernel". */
static char *kernel_name(const struct model *model, const struct kernel *kernel, bool brief)
{
	char *name;

	if (kernel->graph)
		return asprintf(&name, "(graph %u, all that is in it)", kernel->at) < 0 ? NULL :
											  name;
	name = symbol_readable(model->definitions.strings[kernel->at]);
	if (brief && !strncmp(name, "void ", 5))
		memmove(name, name + 5, strlen(name + 5) + 1);
	if (brief && strlen(name) > 60)
		name[60] = '\0';
	return name;
}

static struct table *kernels_table(const struct model *model, bool brief, uint32_t top,
				   uint32_t *all_p)
{
	const struct devices *devices = &model->devices;
	struct table *table = table_new(kernel_columns, KERNEL_COLUMNS);
	uint32_t count = 0, room = devices->kernel_room + devices->graph_room;
	struct kernel *kernels = memory_zero(room + 1, sizeof(*kernels));
	double sum = 0;

	for (uint32_t i = 0; i < devices->kernel_room; i++)
		if (devices->kernels[i].count)
			kernels[count++] = (struct kernel){ &devices->kernels[i], i, false };
	for (uint32_t i = 0; i < devices->graph_room; i++)
		if (devices->graphs[i].count)
			kernels[count++] = (struct kernel){ &devices->graphs[i], i, true };
	qsort(kernels, count, sizeof(*kernels), by_sum);
	for (uint32_t i = 0; i < count; i++)
		sum += (double)kernels[i].name->sum;
	for (uint32_t i = 0; i < count && (!top || i < top); i++) {
		char *text = kernel_name(model, &kernels[i], brief);

		table_add_row(table);
		table_set_text(table, KERNEL_NAME, text);
		table_set_number(table, KERNEL_COUNT, (double)kernels[i].name->count);
		table_set_number(table, KERNEL_MEDIAN,
				 model_ns(model,
					  histogram_percentile(&kernels[i].name->durations, 0.5)));
		table_set_number(table, KERNEL_TOTAL,
				 model_ns(model, (double)kernels[i].name->sum));
		if (sum > 0)
			table_set_number(table, KERNEL_SHARE, (double)kernels[i].name->sum / sum);
		free(text);
	}
	*all_p = count;
	free(kernels);
	return table;
}

json_t *kernels_json(struct model *model)
{
	struct table *table;
	json_t *json;
	uint32_t all;

	if (!device_known(&model->devices))
		return json_null();
	table = kernels_table(model, false, 0, &all);
	json = table_json(table);
	table_free(table);
	return json;
}

/* ---------------------------------------------------------------- text */

static void add_line(struct table *table, const struct model *model, const struct summary *s,
		     const char *title, double units)
{
	char bar[TEXT_BAR_ROOM], text[80];
	double share = units / s->times.wall;

	if (units < s->times.wall * 0.0005)
		return;
	snprintf(text, sizeof(text), "  %s", title);
	table_add_row(table);
	table_set_text(table, 0, text);
	table_set_number(table, 1, model_ns(model, units / s->passes));
	table_set_number(table, 2, share);
	table_set_text(table, 3, text_bar(bar, share, BAR_WIDTH));
}

static void print_times(const struct model *model, unsigned device, const struct summary *s)
{
	static const struct column pass_columns[] = {
		{ NULL, "", COLUMN_TEXT, 0, false },
		{ NULL, "a pass", COLUMN_TIME, 0, false },
		{ NULL, "share", COLUMN_PERCENT, 0, false },
		{ NULL, "", COLUMN_BAR_TEXT, 2, false },
	};
	static const struct column all_columns[] = {
		{ NULL, "", COLUMN_TEXT, 0, false },
		{ NULL, "time", COLUMN_TIME, 0, false },
		{ NULL, "share", COLUMN_PERCENT, 0, false },
		{ NULL, "", COLUMN_BAR_TEXT, 2, false },
	};
	struct table *table = table_new(s->in_loop ? pass_columns : all_columns, 4);
	char heading[40];

	add_line(table, model, s, "kernels", s->times.kernel);
	add_line(table, model, s, "copies and sets alone", s->times.copy);
#define CAUSE_(name, title) add_line(table, model, s, title, s->times.idle[DEVICE_IDLE_##name]);
	DEVICE_CAUSES(CAUSE_)
#undef CAUSE_
	snprintf(heading, sizeof(heading), "what device %u did", device);
	table_print_text(table, heading, stdout);
	table_free(table);
}

static void print_verdict(const struct model *model, const struct summary *s)
{
	const struct device_times *t = &s->times;
	double busy = busy_of(t), host = t->wall - s->wait;
	char device_text[TEXT_NUMBER_ROOM], host_text[TEXT_NUMBER_ROOM], delay[TEXT_NUMBER_ROOM];

	printf("  %s: the device is busy %.1f %% of the time",
	       busy >= BUSY_BOUND * t->wall ? "device-bound" : "host-bound", 100 * busy / t->wall);
	if (s->in_loop && busy > 0 && host > 0)
		printf("; a pass would take %s if the host cost nothing, %s if the device did",
		       text_ns(device_text, model_ns(model, busy / s->passes)),
		       text_ns(host_text, model_ns(model, host / s->passes)));
	putchar('\n');
	if (t->kernels >= 1)
		printf("  %.4g kernels%s start %s after their launch on average; %.2f launches are on their way\n",
		       t->kernels / s->passes, s->in_loop ? " a pass" : "",
		       text_ns(delay, model_ns(model, t->delay / t->kernels)),
		       t->in_flight / t->wall);
}

void devices_print(struct model *model)
{
	struct summary summary;
	struct table *table;
	uint32_t all;

	for (unsigned i = 0; i < DEVICES_MAX; i++) {
		if (!summarise(model, i, &summary))
			continue;
		putchar('\n');
		print_times(model, i, &summary);
		print_verdict(model, &summary);
	}
	if (!device_known(&model->devices))
		return;
	table = kernels_table(model, true, KERNEL_ROWS, &all);
	if (all) {
		putchar('\n');
		table_print_text(table, "kernels", stdout);
		if (all > table_rows(table))
			printf("  … and %u more\n", all - table_rows(table));
	}
	table_free(table);
}
