/* opview.c: groups and sorts the rows of the operator table. See opview.h; columns are op_columns.c. */
#include "analyzer/opview.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/origin.h"

uint32_t site_line(const struct model *model, uint32_t code, uint32_t site)
{
	return code ? code_line(&model->definitions.codes[code], site) : 0;
}

char *site_text(const struct model *model, uint32_t code, uint32_t site)
{
	uint32_t line = site_line(model, code, site);
	char *file, *out;

	if (!code)
		return NULL;
	file = origin_short(model->definitions.codes[code].file);
	if ((line ? asprintf(&out, "%s:%u", file, line) : asprintf(&out, "%s", file)) < 0)
		out = NULL;
	free(file);
	return out;
}

static const char *row_name(struct op_view *view, const struct op_key *key)
{
	const struct definitions *definitions = &view->model->definitions;
	const char *function;
	char *out;

	switch (key->kind) {
	case OP_KIND_OPERATOR: return definitions->ops[key->op];
	case OP_KIND_NODE: return definitions->node_types[key->op];
	case OP_KIND_CALL:
		function = definitions->functions[key->op].name;
		out = arena_get(&view->names, strlen(function) + 3);
		sprintf(out, "(%s)", function);
		return out;
	default: return "(no operator)";
	}
}

/* What rows have in common that are grouped, as text; free it. */
static char *group_key(const struct op_view *view, const struct op_key *key, const char *name,
		       const char *module)
{
	const struct model *model = view->model;
	char *out = NULL;
	size_t size;
	FILE *text = open_memstream(&out, &size);

	if (key->kind == OP_KIND_SECTION && view->group & GROUP_OP && view->flags & VIEW_TEXT) {
		fclose(text);
		return out;
	}
	if (view->group & GROUP_OP)
		fprintf(text, "%u%s", key->kind, name);
	if (view->group & GROUP_SITE)
		fprintf(text, "\n%u %u", key->code, key->site);
	if (view->group & GROUP_LINE)
		fprintf(text, "\n%s:%u", model->definitions.codes[key->user_code].file,
			site_line(model, key->user_code, key->user_site));
	/* Rows by operator and site tell user sites apart too: a library line serves many. */
	if ((view->group & (GROUP_OP | GROUP_SITE)) == (GROUP_OP | GROUP_SITE))
		fprintf(text, "\n%u %u", key->user_code, key->user_site);
	if (view->group & GROUP_MODULE)
		fprintf(text, "\n%s", module ? module : "");
	if (view->group & GROUP_THREAD)
		fprintf(text, "\n%u", key->thread);
	fclose(text);
	return out;
}

static uint32_t hash_text(const char *text)
{
	uint64_t hash = 0;

	for (; *text; text++)
		hash = hash_mix(hash, (unsigned char)*text);
	return (uint32_t)(hash ^ hash >> 32);
}

/* The row of a group. Its key's text is kept in the module's place while the view is made. */
static struct op_stats *stats_of(struct op_view *view, const char *key, char **keys)
{
	uint32_t hash = hash_text(key), probe = hash, found;

	while ((found = hash_next(&view->index, hash, &probe)))
		if (!strcmp(keys[found], key))
			return &view->rows[found];
	memory_grow(view->rows, view->count, view->room);
	memset(&view->rows[view->count], 0, sizeof(*view->rows));
	hash_add(&view->index, hash, view->count);
	keys[view->count] = strdup(key);
	return &view->rows[view->count++];
}

static void add_later(struct op_stats *stats, const struct op_row *row, const struct op_sums *sums)
{
	uint64_t cap = sums->python_cap < 1e18 ? (uint64_t)sums->python_cap : UINT64_MAX;

	stats->samples += row->timed;
	stats->python_samples += row->python_known;
	stats->framework_samples += row->framework_known;
	for (unsigned part = 0; part < OP_PART_COUNT; part++) {
		const struct histogram *values = &row->distribution->parts[part];
		uint64_t known = part == OP_framework || part == OP_fixed ? row->framework_known :
									    row->timed;

		stats->sum[part] += part == OP_fixed ? sums->fixed_known : sums->later[part];
		histogram_merge(&stats->parts[part], values, part == OP_python ? cap : UINT64_MAX);
		if (part != OP_python)
			histogram_add_many(&stats->parts[part], 0, known - values->count);
	}
}

/* A row with one call has no others to speak for it. */
static void add_first(struct op_stats *stats, const struct op_row *row, const struct op_sums *sums)
{
	stats->samples++;
	stats->python_samples += row->first_python_known;
	stats->framework_samples += row->first_framework_known;
	for (unsigned part = 0; part < OP_PART_COUNT; part++) {
		bool known = part == OP_python                        ? row->first_python_known :
			     part == OP_framework || part == OP_fixed ? row->first_framework_known :
									true;

		if (!known)
			continue;
		stats->sum[part] += sums->first[part];
		histogram_add(&stats->parts[part], (uint64_t)fmax(sums->first[part] + 0.5, 0));
	}
}

static void add_device(struct op_stats *stats, const struct devices *devices, uint32_t at)
{
	const struct device_row *row = at < devices->row_room ? &devices->rows[at] : NULL;

	if (!row || !row->works)
		return;
	stats->kernels += row->kernels;
	stats->device_sum += row->sum;
	histogram_merge(&stats->delays, &row->delays, UINT64_MAX);
}

static void add_row(struct op_stats *stats, const struct op_table *table, const struct op_row *row)
{
	struct op_sums sums = op_row_sums(table, row);
	double first = sums.first[OP_fixed] + sums.first[OP_wait];

	stats->calls += row->calls;
	stats->launches += row->launches;
	stats->total += sums.later[OP_fixed] + sums.later[OP_wait] + first;
	if (row->timed)
		add_later(stats, row, &sums);
	else if (row->has_first)
		add_first(stats, row, &sums);
	if (row->has_first && (!stats->first_time || row->first_time < stats->first_time)) {
		stats->first_time = row->first_time;
		stats->first = first;
	}
}

static void add_pass(struct op_stats *stats, const struct model *model, uint32_t row)
{
	double parts[OP_PART_COUNT] = { 0 };
	uint64_t calls = loops_calls(&model->loops, row, model->main_loop);
	uint64_t timed = loops_parts(&model->loops, &model->op_table, row, model->main_loop, parts);

	stats->loop_calls += calls;
	for (unsigned part = 0; timed && part < OP_PART_COUNT; part++)
		stats->pass[part] += parts[part] / (double)timed * (double)calls;
	stats->pass_known |= timed != 0;
}

static void add_floor(struct op_stats *stats, const struct op_floor *floor)
{
	stats->on_cpu |= floor != NULL;
	if (floor && floor->places && (!stats->floor || floor->least < stats->floor->least))
		stats->floor = floor;
}

/* Operators inside others: of them only the order and the number are known. */
static void add_nested(struct op_view *view, char ***keys_p)
{
	const struct model *model = view->model;
	const struct call_tree *tree = &model->tree;

	for (uint32_t i = TREE_OTHER + 1; i < tree->count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint32_t around = node->parent;
		char *key;

		if ((node->kind != TRACE_OP && node->kind != TRACE_OP_SPAN) || !node->count)
			continue;
		while (around > TREE_OTHER && tree->nodes[around].kind != TRACE_OP &&
		       tree->nodes[around].kind != TRACE_OP_SPAN &&
		       tree->nodes[around].kind != TRACE_NODE)
			around = tree->nodes[around].parent;
		if (around <= TREE_OTHER)
			continue;
		const struct tree_node *outer = &tree->nodes[around];
		const char *name = model->definitions.ops[node->index];
		const char *parent = outer->kind == TRACE_NODE ?
					     model->definitions.node_types[outer->index] :
					     model->definitions.ops[outer->index];
		if (asprintf(&key, "\n\n%s in %s", name, parent) < 0)
			continue;
		*keys_p = memory_resize(*keys_p, view->count + 2, sizeof(**keys_p));
		struct op_stats *stats = stats_of(view, key, *keys_p);
		stats->op = name;
		stats->parent = parent;
		stats->calls += node->count;
		free(key);
	}
}

void op_view_make(struct op_view *view, struct model *model, unsigned group, unsigned flags)
{
	const struct op_table *table = &model->op_table;
	char **keys = memory_zero(table->count + 1, sizeof(*keys));
	char **modules = memory_zero(model->definitions.code_count, sizeof(*modules));

	*view = (struct op_view){ .model = model, .group = group, .flags = flags };
	view->floors = floors_make(model);
	memory_grow(view->rows, view->count, view->room);
	view->count = 1;
	for (uint32_t i = 1; i < table->count; i++) {
		const struct op_row *row = &table->rows[i];
		const char *name = row_name(view, &row->key);
		char **module = &modules[row->key.code];

		if (!row->calls)
			continue;
		if (group & GROUP_MODULE && row->key.code && !*module)
			*module = origin_module(model->definitions.codes[row->key.code].file);
		char *key = group_key(view, &row->key, name, *module);
		struct op_stats *stats = stats_of(view, key, keys);
		if (!stats->calls) {
			stats->key = row->key;
			stats->op = group & GROUP_OP ? name : NULL;
			stats->module = *module ? strdup(*module) : NULL;
		}
		stats->several_kinds |= stats->key.kind != row->key.kind;
		add_row(stats, table, row);
		add_device(stats, &model->devices, i);
		if (model->main_loop)
			add_pass(stats, model, i);
		if (group & GROUP_OP)
			add_floor(stats, floors_of(view->floors, row));
		free(key);
	}
	if (flags & VIEW_NESTED)
		add_nested(view, &keys);
	for (uint32_t i = 1; i < view->count; i++)
		free(keys[i]);
	for (uint32_t i = 0; i < model->definitions.code_count; i++)
		free(modules[i]);
	free(keys);
	free(modules);
	op_view_sort(view, "total");
}

void op_view_free(struct op_view *view)
{
	for (uint32_t i = 1; i < view->count; i++) {
		for (unsigned part = 0; part < OP_PART_COUNT; part++)
			histogram_free(&view->rows[i].parts[part]);
		histogram_free(&view->rows[i].delays);
		free(view->rows[i].module);
	}
	free(view->rows);
	free(view->floors);
	hash_free(&view->index);
	arena_free(&view->names);
	*view = (struct op_view){ 0 };
}

/* ---------------------------------------------------------------- order */

#define KEY_TOTAL    OP_PART_COUNT
#define KEY_CALLS    (OP_PART_COUNT + 1)
#define KEY_LAUNCHES (OP_PART_COUNT + 2)
#define KEY_FIRST    (OP_PART_COUNT + 3)
#define KEY_DEVICE   (OP_PART_COUNT + 4)
#define KEY_PASS     (OP_PART_COUNT + 5)
#define KEY_NAME     (OP_PART_COUNT + 6)

static const char *const sort_keys[] = {
#define PART_(name) #name,
	OP_PARTS(PART_)
#undef PART_
		"total",
	"calls",
	"launches",
	"first",
	"device",
	"pass",
	"name",
};

static double sort_value(const struct op_stats *row, unsigned key)
{
	if (key < OP_PART_COUNT) {
		uint64_t samples = op_stats_samples(row, key);

		return samples ? row->sum[key] / (double)samples : -1;
	}
	return key == KEY_CALLS    ? (double)row->calls :
	       key == KEY_LAUNCHES ? (double)row->launches :
	       key == KEY_FIRST    ? row->first :
	       key == KEY_DEVICE   ? (double)row->device_sum :
	       key == KEY_PASS     ? row->pass[OP_fixed] + row->pass[OP_wait] :
				     row->total;
}

/* Nested operators have no total; after them what is none, however much it took. */
static unsigned rank(const struct op_stats *row)
{
	return row->parent ? 1 : row->op && row->key.kind == OP_KIND_SECTION ? 2 : 0;
}

static int compare(const void *left, const void *right, void *context)
{
	const struct op_stats *a = left, *b = right;
	unsigned key = *(const unsigned *)context;
	double difference = key == KEY_NAME ? 0 : sort_value(b, key) - sort_value(a, key);

	if (rank(a) != rank(b))
		return rank(a) > rank(b) ? 1 : -1;
	if (difference != 0)
		return difference > 0 ? 1 : -1;
	if (a->op && b->op && strcmp(a->op, b->op))
		return strcmp(a->op, b->op);
	if (a->calls != b->calls)
		return a->calls < b->calls ? 1 : -1;
	return a->first_time < b->first_time ? -1 : a->first_time > b->first_time;
}

bool op_view_sort(struct op_view *view, const char *name)
{
	for (unsigned key = 0; key < sizeof(sort_keys) / sizeof(*sort_keys); key++)
		if (!strcmp(sort_keys[key], name) || (key == KEY_TOTAL && !strcmp(name, "share"))) {
			if (view->count > 2)
				qsort_r(view->rows + 1, view->count - 1, sizeof(*view->rows),
					compare, &key);
			return true;
		}
	return false;
}

const char *op_view_sort_keys(void)
{
	return "total, share, fixed, wait, python, framework, library, launch, copy, memory, gil, first, pass, device, "
	       "calls, launches, name";
}

unsigned op_view_hidden(const struct op_view *view, unsigned top)
{
	unsigned operators = 0;

	for (uint32_t i = 1; i < view->count; i++)
		operators += rank(&view->rows[i]) < 2;
	return top && operators > top ? operators - top : 0;
}
