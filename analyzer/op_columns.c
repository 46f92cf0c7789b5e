/* op_columns.c: the columns of the operator table. See opview.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/mainloop.h"
#include "analyzer/opview.h"

/* COLUMN(ID, key, title, format, drop) in the order of JSON and text. */
#define COLUMNS(COLUMN)                                                                            \
	COLUMN(NAME, NULL, "", COLUMN_TEXT, 0)                                                     \
	COLUMN(OP, "op", NULL, COLUMN_TEXT, 0)                                                     \
	COLUMN(KIND, "kind", NULL, COLUMN_TEXT, 0)                                                 \
	COLUMN(PARENT, "parent", "inside", COLUMN_TEXT, 0)                                         \
	COLUMN(SITE, NULL, "site", COLUMN_PATH, 0)                                                 \
	COLUMN(SITE_FILE, "site.file", NULL, COLUMN_TEXT, 0)                                       \
	COLUMN(SITE_LINE, "site.line", NULL, COLUMN_ID, 0)                                         \
	COLUMN(SITE_FUNCTION, "site.function", "in", COLUMN_TEXT, 11)                              \
	COLUMN(USER, NULL, "your line", COLUMN_PATH, 0)                                            \
	COLUMN(USER_FILE, "user_site.file", NULL, COLUMN_TEXT, 0)                                  \
	COLUMN(USER_LINE, "user_site.line", NULL, COLUMN_ID, 0)                                    \
	COLUMN(USER_FUNCTION, "user_site.function", NULL, COLUMN_TEXT, 0)                          \
	COLUMN(MODULE, "module", NULL, COLUMN_TEXT, 0)                                             \
	COLUMN(MODULE_TEXT, NULL, "module", COLUMN_PATH, 0)                                        \
	COLUMN(THREAD, "thread", NULL, COLUMN_TEXT, 0)                                             \
	COLUMN(THREAD_TEXT, NULL, "thread", COLUMN_TEXT, 0)                                        \
	COLUMN(CALLS, "calls", "calls", COLUMN_COUNT, 0)                                           \
	COLUMN(CALLS_PER_PASS, "calls_per_pass", "a pass", COLUMN_REAL, 0)                         \
	COLUMN(PASS_TOTAL, "pass_ns.total", "in a pass", COLUMN_TIME, 8)                           \
	COLUMN(LAUNCHES, "launches", "launches", COLUMN_COUNT, 9)                                  \
	COLUMN(KERNELS, "kernels_per_call", "kernels", COLUMN_REAL, 0)                             \
	COLUMN(DEVICE, "device_ns", "device", COLUMN_US, 0)                                        \
	COLUMN(DELAY, "start_delay_ns", "to start", COLUMN_US, 0)                                  \
	COLUMN(DEVICE_TOTAL, "device_total_ns", "on device", COLUMN_TIME, 0)                       \
	COLUMN(FIRST, "first_ns", "first", COLUMN_TIME, 10)

#define TAIL_COLUMNS(COLUMN)                                                                       \
	COLUMN(FLOOR, "floor_ns", "floor", COLUMN_US, 8)                                           \
	COLUMN(FLOOR_BASIS, "floor_basis", NULL, COLUMN_TEXT, 0)                                   \
	COLUMN(TOTAL, "total_ns", "total", COLUMN_TIME, 5)                                         \
	COLUMN(SHARE, "share", "share", COLUMN_PERCENT, 0)

/* PART(name, title, drop): text shows the median of a call, or the sum of a pass. */
#define PART_COLUMNS(PART)                                                                         \
	PART(python, "python", 3)                                                                  \
	PART(framework, "framework", 3)                                                            \
	PART(library, "library", 4)                                                                \
	PART(launch, "launch", 3)                                                                  \
	PART(copy, "copy", 6)                                                                      \
	PART(memory, "memory", 7)                                                                  \
	PART(fixed, "fixed", 0)                                                                    \
	PART(gil, "gil", 9)                                                                        \
	PART(wait, "wait", 0)

enum {
#define PART_(name, title, drop)                                                                   \
	COLUMN_##name##_p10, COLUMN_##name##_median, COLUMN_##name##_mean, COLUMN_##name##_pass,
	COLUMNS(COLUMN_NUMBER) PART_COLUMNS(PART_) TAIL_COLUMNS(COLUMN_NUMBER) COLUMNS_ALL,
#undef PART_
};

#define PART_COLUMN(name, median, pass, drop)                                                      \
	{ #name "_ns.p10", NULL, COLUMN_US, 0, false },                                            \
		{ #name "_ns.median", median, COLUMN_US, drop, false },                            \
		{ #name "_ns.mean", NULL, COLUMN_US, 0, false },                                   \
		{ "pass_ns." #name, pass, COLUMN_US, drop, false },

static const struct column columns[] = {
#define PART_(name, title, drop) PART_COLUMN(name, title, NULL, drop)
	COLUMNS(COLUMN_DESCRIPTION) PART_COLUMNS(PART_) TAIL_COLUMNS(COLUMN_DESCRIPTION)
#undef PART_
};

static const struct column columns_per_pass[] = {
#define PART_(name, title, drop) PART_COLUMN(name, NULL, title, drop)
	COLUMNS(COLUMN_DESCRIPTION) PART_COLUMNS(PART_) TAIL_COLUMNS(COLUMN_DESCRIPTION)
#undef PART_
};

static const struct {
	unsigned part, column;
} part_columns[] = {
#define PART_(name, title, drop) { OP_##name, COLUMN_##name##_p10 },
	PART_COLUMNS(PART_)
#undef PART_
};

static void set_site(struct table *table, const struct model *model, uint32_t code, uint32_t site,
		     unsigned file, unsigned line, unsigned function)
{
	uint32_t number = site_line(model, code, site);

	if (!code)
		return;
	table_set_text(table, file, model->definitions.codes[code].file);
	if (number)
		table_set_number(table, line, number);
	table_set_text(table, function, model->definitions.codes[code].name);
}

static void set_text(struct table *table, unsigned column, char *text)
{
	table_set_text(table, column, text);
	free(text);
}

/* Parts that the trace cannot tell are unknown, not 0. */
static bool part_known(const struct model *model, const struct op_stats *row, unsigned part)
{
	bool cuda = !definitions_layer_off(&model->definitions, "cuda");

	switch (part) {
	case OP_library: return model->has_library;
	case OP_launch:
	case OP_copy:
	case OP_memory:
	case OP_wait: return row->samples && cuda;
	default: return op_stats_samples(row, part);
	}
}

static void set_parts(struct table *table, const struct model *model, const struct op_stats *row)
{
	for (unsigned i = 0; i < sizeof(part_columns) / sizeof(*part_columns); i++) {
		unsigned part = part_columns[i].part, column = part_columns[i].column;
		const struct histogram *values = &row->parts[part];
		uint64_t samples = op_stats_samples(row, part);

		if (!part_known(model, row, part))
			continue;
		table_set_number(table, column, model_ns(model, histogram_percentile(values, 0.1)));
		table_set_number(table, column + 1,
				 model_ns(model, histogram_percentile(values, 0.5)));
		table_set_number(table, column + 2,
				 model_ns(model, row->sum[part] / (double)samples));
	}
}

static const char *thread_text(const struct model *model, uint32_t index, char *room, size_t size)
{
	const struct def_thread *thread = &model->definitions.threads[index];

	if (!index)
		return "others";
	snprintf(room, size, "%u %s", thread->number, thread->name);
	return room;
}

/* What the rows are told apart by comes first, the rest in columns of its own. */
static void set_places(struct table *table, const struct op_view *view, const struct op_stats *row)
{
	const struct model *model = view->model;
	const struct op_key *key = &row->key;
	unsigned group = view->group, primary = group & -group;
	char room[64];

	if (group & GROUP_OP)
		table_set_text(table, COLUMN_NAME, row->op);
	if (group & GROUP_SITE) {
		set_site(table, model, key->code, key->site, COLUMN_SITE_FILE, COLUMN_SITE_LINE,
			 COLUMN_SITE_FUNCTION);
		set_text(table, primary == GROUP_SITE ? COLUMN_NAME : COLUMN_SITE,
			 site_text(model, key->code, key->site));
	}
	if (group & GROUP_LINE || (group & GROUP_OP && group & GROUP_SITE)) {
		bool same = group & GROUP_SITE && key->code == key->user_code &&
			    key->site == key->user_site;

		set_site(table, model, key->user_code, key->user_site, COLUMN_USER_FILE,
			 COLUMN_USER_LINE, COLUMN_USER_FUNCTION);
		set_text(table, primary == GROUP_LINE ? COLUMN_NAME : COLUMN_USER,
			 same ? strdup("") : site_text(model, key->user_code, key->user_site));
	}
	if (group & GROUP_MODULE) {
		table_set_text(table, COLUMN_MODULE, row->module);
		table_set_text(table, primary == GROUP_MODULE ? COLUMN_NAME : COLUMN_MODULE_TEXT,
			       row->module);
	}
	if (group & GROUP_THREAD) {
		const char *thread = thread_text(model, key->thread, room, sizeof(room));

		table_set_text(table, COLUMN_THREAD, thread);
		table_set_text(table, primary == GROUP_THREAD ? COLUMN_NAME : COLUMN_THREAD_TEXT,
			       thread);
	}
}

/* What devices did because of the row. Unknown without the layer gpu. */
static void set_device(struct table *table, const struct model *model, const struct op_stats *row)
{
	table_set_number(table, COLUMN_KERNELS, (double)row->kernels / (double)row->calls);
	table_set_number(table, COLUMN_DEVICE,
			 model_ns(model, (double)row->device_sum / (double)row->calls));
	table_set_number(table, COLUMN_DEVICE_TOTAL, model_ns(model, (double)row->device_sum));
	if (row->kernels)
		table_set_number(table, COLUMN_DELAY,
				 model_ns(model, histogram_percentile(&row->delays, 0.5)));
}

/* What is at many places at once. */
static void set_nowhere(struct table *table, const char *name)
{
	static const unsigned places[] = { COLUMN_SITE, COLUMN_SITE_FUNCTION, COLUMN_USER,
					   COLUMN_MODULE_TEXT, COLUMN_THREAD_TEXT };

	table_set_text(table, COLUMN_NAME, name);
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		table_set_blank(table, places[i]);
}

/* Of the main loop, or the one that was named. */
static void set_pass(struct table *table, const struct model *model, const struct op_stats *row)
{
	double passes = (double)main_loop_passes(model);

	if (passes <= 0)
		return;
	table_set_number(table, COLUMN_CALLS_PER_PASS, (double)row->loop_calls / passes);
	if (row->loop_calls && !row->pass_known)
		return;
	for (unsigned i = 0; i < sizeof(part_columns) / sizeof(*part_columns); i++)
		if (!row->loop_calls || part_known(model, row, part_columns[i].part))
			table_set_number(table, part_columns[i].column + 3,
					 model_ns(model, row->pass[part_columns[i].part] / passes));
	table_set_number(table, COLUMN_PASS_TOTAL,
			 model_ns(model, (row->pass[OP_fixed] + row->pass[OP_wait]) / passes));
}

/* The way to the operator is this row's own, whatever the data; of the rest it is the least. */
static void set_floor(struct table *table, const struct model *model, const struct op_stats *row)
{
	const struct op_floor *floor = row->floor;
	double python = 0;
	char basis[160];

	if (!row->on_cpu)
		return;
	if (!floor) {
		table_set_text(table, COLUMN_FLOOR_BASIS,
			       "unknown: at no place it was called often enough");
		return;
	}
	if (!floor->known) {
		snprintf(
			basis, sizeof(basis),
			"unknown: %lu calls at %u places took about the same, of small data or all "
			"of large",
			floor->calls, floor->places);
	} else {
		snprintf(
			basis, sizeof(basis),
			"lowest decile of %lu calls at %u places, where it took least; sizes are not "
			"in a trace",
			floor->calls, floor->places);
		if (row->python_samples)
			python = histogram_percentile(&row->parts[OP_python], 0.5);
		table_set_number(table, COLUMN_FLOOR, model_ns(model, python + floor->least));
	}
	table_set_text(table, COLUMN_FLOOR_BASIS, basis);
}

static void add_row(struct table *table, const struct op_view *view, const struct op_stats *row,
		    double wall)
{
	static const char *const kinds[] = { "operator", "backward", "call", "none" };
	const struct model *model = view->model;

	table_add_row(table);
	table_set_text(table, COLUMN_OP, row->op);
	table_set_number(table, COLUMN_CALLS, (double)row->calls);
	if (row->parent) {
		table_set_text(table, COLUMN_NAME, row->op);
		table_set_text(table, COLUMN_KIND, "nested");
		table_set_text(table, COLUMN_PARENT, row->parent);
		return;
	}
	if (!row->several_kinds)
		table_set_text(table, COLUMN_KIND, kinds[row->key.kind]);
	if (row->op && row->key.kind == OP_KIND_SECTION && view->flags & VIEW_TEXT)
		set_nowhere(table, row->op);
	else
		set_places(table, view, row);
	set_pass(table, model, row);
	set_floor(table, model, row);
	table_set_number(table, COLUMN_LAUNCHES, (double)row->launches);
	table_set_number(table, COLUMN_TOTAL, model_ns(model, row->total));
	if (row->first_time)
		table_set_number(table, COLUMN_FIRST, model_ns(model, row->first));
	if (wall > 0)
		table_set_number(table, COLUMN_SHARE, row->total / wall);
	set_parts(table, model, row);
	if (view->device && device_known(&model->devices))
		set_device(table, model, row);
}

/* What the rows add up to, those that are not shown too. Medians do not. */
static void add_total(struct table *table, const struct op_view *view, double wall)
{
	const struct model *model = view->model;
	struct op_stats all = { 0 };

	for (uint32_t i = 1; i < view->count; i++) {
		const struct op_stats *row = &view->rows[i];

		if (row->parent)
			continue;
		all.calls += row->calls;
		all.loop_calls += row->loop_calls;
		all.launches += row->launches;
		all.total += row->total;
		all.pass_known |= row->pass_known;
		for (unsigned part = 0; part < OP_PART_COUNT; part++)
			all.pass[part] += row->pass[part];
	}
	table_add_row(table);
	for (unsigned column = 0; column < COLUMNS_ALL; column++)
		table_set_blank(table, column);
	set_nowhere(table, "all");
	table_set_number(table, COLUMN_CALLS, (double)all.calls);
	table_set_number(table, COLUMN_LAUNCHES, (double)all.launches);
	set_pass(table, model, &all);
	table_set_number(table, COLUMN_TOTAL, model_ns(model, all.total));
	/* Threads that run at once take more than the clock. */
	if (wall > 0 && all.total <= wall)
		table_set_number(table, COLUMN_SHARE, all.total / wall);
}

struct table *op_view_table(const struct op_view *view, unsigned top, double wall)
{
	struct table *table = table_new(view->per_pass ? columns_per_pass : columns, COLUMNS_ALL);
	bool text = view->flags & VIEW_TEXT;
	unsigned shown = top ? view->count - 1 - op_view_hidden(view, top) : view->count - 1;
	uint32_t count = view->count - 1;

	for (uint32_t i = 1; i <= count; i++)
		if (!top || i <= top || (text && i > count - (shown - top)))
			add_row(table, view, &view->rows[i], wall);
	if (text && count > 1)
		add_total(table, view, wall);
	return table;
}
