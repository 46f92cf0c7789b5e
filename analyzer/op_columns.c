/* op_columns.c: the columns of the operator table. See opview.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	COLUMN(LAUNCHES, "launches", "launches", COLUMN_COUNT, 9)                                  \
	COLUMN(KERNELS, "kernels_per_call", "kernels", COLUMN_REAL, 0)                             \
	COLUMN(DEVICE, "device_ns", "device", COLUMN_US, 0)                                        \
	COLUMN(DELAY, "start_delay_ns", "to start", COLUMN_US, 0)                                  \
	COLUMN(DEVICE_TOTAL, "device_total_ns", "on device", COLUMN_TIME, 0)                       \
	COLUMN(FIRST, "first_ns", "first", COLUMN_TIME, 10)

#define TAIL_COLUMNS(COLUMN)                                                                       \
	COLUMN(TOTAL, "total_ns", "total", COLUMN_TIME, 5)                                         \
	COLUMN(SHARE, "share", "share", COLUMN_PERCENT, 0)

/* PART(name, title, drop): text shows the median. */
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
#define PART_(name, title, drop) COLUMN_##name##_p10, COLUMN_##name##_median, COLUMN_##name##_mean,
	COLUMNS(COLUMN_NUMBER) PART_COLUMNS(PART_) TAIL_COLUMNS(COLUMN_NUMBER) COLUMNS_ALL,
#undef PART_
};

static const struct column columns[] = {
#define PART_(name, title, drop)                                                                   \
	{ #name "_ns.p10", NULL, COLUMN_US, 0, false },                                            \
		{ #name "_ns.median", title, COLUMN_US, drop, false },                             \
		{ #name "_ns.mean", NULL, COLUMN_US, 0, false },
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
	set_places(table, view, row);
	if (model->main_loop && model->loops.nodes[model->main_loop].passes_known)
		table_set_number(table, COLUMN_CALLS_PER_PASS,
				 (double)row->loop_calls /
					 (double)model->loops.nodes[model->main_loop].passes);
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

struct table *op_view_table(const struct op_view *view, unsigned top, double wall)
{
	struct table *table = table_new(columns, COLUMNS_ALL);
	uint32_t count = view->count - 1;

	for (uint32_t i = 1; i <= count && (!top || i <= top); i++)
		add_row(table, view, &view->rows[i], wall);
	return table;
}
