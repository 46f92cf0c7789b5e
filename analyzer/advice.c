/* advice.c: see advice.h. */
#include "analyzer/advice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/bench.h"
#include "analyzer/mainloop.h"
#include "analyzer/model.h"
#include "analyzer/opview.h"
#include "analyzer/origin.h"

#define PER_PASS_LEAST 0.5
#define SHARE_LEAST    0.001 /* of a pass: what would be saved */
#define SMALL_BYTES    (64u << 10)

/* Instructions and nodes of the tree that are looked at for one rule: no program has so many. */
#define WORK_MAX (1u << 29)

#define CODE_VARARGS 0x04

static const char *const names[ADVICE_RULES] = {
#define ADVICE(NAME, name, text) name,
#include "analyzer/advice.def"
#undef ADVICE
};

static const char *const texts[ADVICE_RULES] = {
#define ADVICE(NAME, name, text) text,
#include "analyzer/advice.def"
#undef ADVICE
};

/* What the rules look at. */
struct sight {
	struct model *model;
	const struct syncs *syncs;
	uint32_t loop; /* the main loop */
	double passes;
	const bool *inside; /* by node of the call tree: within the main loop */
};

static bool is_one_of(const char *op, const char *const *list, unsigned count)
{
	size_t length = strcspn(op, ".");

	for (unsigned i = 0; i < count; i++)
		if (strlen(list[i]) == length && !memcmp(list[i], op, length))
			return true;
	return false;
}

static void add_place(struct advice *advice, uint32_t code, uint32_t line, double per_pass,
		      double cost_ns, double saves_ns)
{
	uint32_t i = 0;

	advice->per_pass += per_pass;
	advice->cost_ns += cost_ns;
	advice->saves_ns += saves_ns;
	while (i < advice->count &&
	       (advice->places[i].code != code || advice->places[i].line != line))
		i++;
	if (i == advice->count) {
		memory_grow(advice->places, advice->count, advice->room);
		advice->places[advice->count++] =
			(struct advice_place){ .code = code, .line = line };
	}

	struct advice_place *place = &advice->places[i];
	place->per_pass += per_pass;
	place->cost_ns += cost_ns;
	place->saves_ns += saves_ns;
}

/* Of what a library's loop does, your line is the same for all: then it is the library's. */
static void add_site(const struct sight *sight, struct advice *advice, uint32_t code, uint32_t site,
		     uint32_t user_code, uint32_t user_site, const double figures[3])
{
	const struct model *model = sight->model;
	bool in_library = code &&
			  !model->definitions.codes[model->loops.nodes[sight->loop].code].user;

	add_place(advice, in_library ? code : user_code,
		  in_library ? site_line(model, code, site) :
			       site_line(model, user_code, user_site),
		  figures[0], figures[1], figures[2]);
}

static double published_ns(const char *name)
{
	for (unsigned i = 0; i < bench_row_count; i++)
		if (!strcmp(bench_rows[i].name, name))
			return bench_rows[i].published_ns;
	return NAN;
}

/* ---------------------------------------------------------------- operators and copies */

/* Fixed cost and waiting of a call of a row, the first apart. */
static double row_call_ns(const struct model *model, const struct op_row *row)
{
	struct op_sums sums = op_row_sums(&model->op_table, row);

	return row->timed ? model_ns(model, (sums.later[OP_fixed] + sums.later[OP_wait]) /
						    (double)row->timed) :
			    0;
}

/* Small copies from host to device (1) or back (2) in a call of a row; *ns_p: what they take. */
static double small_copies(const struct model *model, const struct op_row *row, uint32_t direction,
			   double *ns_p)
{
	const struct calls *calls = &model->calls;
	double count = 0, units = 0;

	for (uint32_t at = row->cells; at; at = model->op_table.cells[at].next) {
		const struct op_cell *cell = &model->op_table.cells[at];
		const struct call_class *class = &calls->classes[cell->class];

		if ((class->category != TRACE_CATEGORY_COPY &&
		     class->category != TRACE_CATEGORY_COPY_SYNC) ||
		    !class->variant || class->least_bytes > SMALL_BYTES ||
		    calls->rates[class->rate].kind != direction)
			continue;
		count += (double)(cell->calls + cell->first_calls);
		units += (double)(cell->sum + cell->first_sum);
	}
	*ns_p = model_ns(model, units / (double)row->calls);
	return count / (double)row->calls;
}

static void find_direction(const struct sight *sight, struct advice *advice, uint32_t direction)
{
	static const char *const copiers[] = {
#define COPIER(op) op,
#include "analyzer/advice.def"
#undef COPIER
	};
	const struct model *model = sight->model;
	struct advice found = { 0 };

	for (uint32_t i = 1; i < model->op_table.count; i++) {
		const struct op_row *row = &model->op_table.rows[i];
		double ns,
			calls = (double)loops_calls(&model->loops, i, sight->loop) / sight->passes;
		double copies = calls > 0 ? small_copies(model, row, direction, &ns) : 0;

		if (copies <= 0 || !row->key.user_code)
			continue;
		if (row->key.kind == OP_KIND_OPERATOR &&
		    is_one_of(model->definitions.ops[row->key.op], copiers,
			      sizeof(copiers) / sizeof(*copiers)))
			ns = row_call_ns(model, row);
		add_site(sight, &found, row->key.code, row->key.site, row->key.user_code,
			 row->key.user_site, (const double[]){ copies * calls, ns * calls, 0 });
	}
	/* One of them stays. */
	for (uint32_t i = 0; i < found.count && found.per_pass >= 2; i++) {
		const struct advice_place *place = &found.places[i];

		add_place(advice, place->code, place->line, place->per_pass, place->cost_ns,
			  place->cost_ns * (1 - 1 / found.per_pass));
	}
	free(found.places);
}

static void find_COPIES(const struct sight *sight, struct advice *advice)
{
	find_direction(sight, advice, 1);
	find_direction(sight, advice, 2);
}

static void find_SYNCS(const struct sight *sight, struct advice *advice)
{
	for (uint32_t i = 0; i < sight->syncs->count; i++) {
		const struct sync *sync = &sight->syncs->rows[i];
		const struct finding_key *key = &sync->finding->key;
		double per_pass = sync->verdict.main_per_pass;
		double cost = sync->verdict.wait_ns / (double)sync->finding->count * per_pass;

		if (sync->section == SYNC_HIDDEN && sync->verdict.in_main && per_pass > 0)
			add_site(sight, advice, key->code, key->site, key->user_code,
				 key->user_site, (const double[]){ per_pass, cost, cost });
	}
}

/* Of the user's own lines; nothing is said where it is not seen that a node was made. */
static void find_IN_PLACE(const struct sight *sight, struct advice *advice)
{
	static const char *const twins[] = {
#define INPLACE(op) op,
#include "analyzer/advice.def"
#undef INPLACE
	};
	const struct model *model = sight->model;
	const double shares[2] = {
		1 - published_ns("cpu.add_") / published_ns("cpu.add"),
		1 - published_ns("gpu.add_") / published_ns("gpu.add"),
	};

	advice->published = true;
	if (definitions_layer_state(&model->definitions, "ops.tap") != LAYER_ON)
		return;
	for (uint32_t i = 1; i < model->op_table.count; i++) {
		const struct op_row *row = &model->op_table.rows[i];
		const struct op_key *key = &row->key;
		double calls, cost;

		if (key->kind != OP_KIND_OPERATOR || row->made || !key->code ||
		    key->code != key->user_code || key->site != key->user_site ||
		    !is_one_of(model->definitions.ops[key->op], twins,
			       sizeof(twins) / sizeof(*twins)))
			continue;
		calls = (double)loops_calls(&model->loops, i, sight->loop) / sight->passes;
		cost = calls * row_call_ns(model, row);
		if (calls > 0)
			add_place(advice, key->code, site_line(model, key->code, key->site), calls,
				  cost, cost * shares[row->launches > 0]);
	}
}

/* ---------------------------------------------------------------- Python */

/* Which nodes of the call tree lie within a pass of the main loop. */
static bool *find_inside(const struct model *model, uint32_t loop)
{
	bool *inside = memory_zero(model->tree.count, sizeof(*inside));
	const struct loop_node *main_loop = &model->loops.nodes[loop];
	const struct code_loops *loops = model->definitions.codes[main_loop->code].loops;

	for (uint32_t i = TREE_OTHER + 1; i < model->tree.count; i++) {
		const struct tree_node *node = &model->tree.nodes[i];
		uint32_t at = 0;

		if (node->code == main_loop->code && node->site && node->site <= loops->units)
			at = loops->at[node->site - 1] & ~BYTECODE_ASIDE;
		while (at && at != main_loop->loop)
			at = loops->loops[at].outer;
		inside[i] = at || inside[node->parent];
	}
	return inside;
}

static void find_ARGUMENTS(const struct sight *sight, struct advice *advice)
{
	const struct definitions *definitions = &sight->model->definitions;
	double with = published_ns("call.star10"), saved = with - published_ns("call.one");

	advice->published = true;
	for (uint32_t i = TREE_OTHER + 1; i < sight->model->tree.count; i++) {
		const struct tree_node *node = &sight->model->tree.nodes[i];
		const struct def_code *code = &definitions->codes[node->index];
		double calls = (double)node->count / sight->passes;

		if (sight->inside[i] && node->kind == TRACE_FRAME && calls > 0 && code->user &&
		    code->flags & CODE_VARARGS)
			add_place(advice, node->index, code->first_line, calls, calls * with,
				  calls * saved);
	}
}

/* How often what is at each unit of a function was called from within the main loop. */
static uint64_t *count_sites(const struct sight *sight, uint32_t code, uint32_t units)
{
	uint64_t *counts = memory_zero(units + 1, sizeof(*counts));

	for (uint32_t i = TREE_OTHER + 1; i < sight->model->tree.count; i++) {
		const struct tree_node *node = &sight->model->tree.nodes[i];

		if (sight->inside[i] && node->code == code && node->site && node->site <= units)
			counts[node->site - 1] += node->count;
	}
	return counts;
}

/*
 * Only where something is called next that is in the trace: so often the list was made. `work` is what has been
 * looked at.
 */
static void find_lists(const struct sight *sight, struct advice *advice, uint32_t code, double with,
		       double saved, uint64_t *work)
{
	const struct def_code *definition = &sight->model->definitions.codes[code];
	const struct trace_str bytecode = { (const char *)definition->bytecode,
					    definition->bytecode_bytes };
	uint32_t units = bytecode.length / 2;
	uint32_t unit = bytecode_constant_list(definition->python, bytecode, 0);
	uint64_t *counts = unit ? count_sites(sight, code, units) : NULL;

	*work += unit ? sight->model->tree.count : 0;
	for (; unit && *work < WORK_MAX;
	     unit = bytecode_constant_list(definition->python, bytecode, unit)) {
		*work += units;
		uint32_t end = bytecode_straight_end(definition->python, bytecode, unit);
		uint64_t most = 0;

		for (uint32_t at = unit; at < end; at++)
			most = counts[at] > most ? counts[at] : most;
		double runs = (double)most / sight->passes;
		if (most)
			add_place(advice, code, code_line(definition, unit), runs, runs * with,
				  runs * saved);
	}
	free(counts);
}

static void find_TUPLES(const struct sight *sight, struct advice *advice)
{
	const struct definitions *definitions = &sight->model->definitions;
	double with = published_ns("list.literal"), saved = with - published_ns("tuple.literal");

	uint64_t work = 0;

	advice->published = true;
	for (uint32_t i = 1; i < definitions->code_count && work < WORK_MAX; i++)
		if (definitions->codes[i].user && definitions->codes[i].python)
			find_lists(sight, advice, i, with, saved, &work);
}

static void find_EXCEPTIONS(const struct sight *sight, struct advice *advice)
{
	const struct model *model = sight->model;

	for (uint32_t i = 1; i < model->raises.count; i++) {
		const struct raise_row *row = &model->raises.rows[i];
		double cost = model_ns(model, (double)row->units) / sight->passes;

		if (row->count && loops_is_in(&model->loops, row->loop, sight->loop))
			add_place(advice, row->code, site_line(model, row->code, row->site),
				  (double)row->count / sight->passes, cost, cost);
	}
}

/* ---------------------------------------------------------------- all */

static int by_cost(const void *left, const void *right)
{
	const struct advice_place *a = left, *b = right;

	if (a->cost_ns != b->cost_ns)
		return a->cost_ns > b->cost_ns ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

void advice_make(struct advice_list *list, struct model *model, const struct syncs *syncs)
{
	static void (*const find[ADVICE_RULES])(const struct sight *, struct advice *) = {
#define ADVICE(NAME, name, text) find_##NAME,
#include "analyzer/advice.def"
#undef ADVICE
	};
	const struct loop_node *node = &model->loops.nodes[syncs->main_loop];
	struct sight sight = { model, syncs, syncs->main_loop, (double)node->passes, NULL };
	double pass_ns;
	bool *inside;

	*list = (struct advice_list){ .model = model };
	if (!syncs->main_loop || !node->passes_known || !node->passes)
		return;
	pass_ns = model_ns(model, (double)node->time) / sight.passes;
	sight.inside = inside = find_inside(model, sight.loop);
	for (unsigned i = 0; i < ADVICE_RULES; i++) {
		struct advice *advice = &list->rules[i];

		find[i](&sight, advice);
		if (advice->per_pass < PER_PASS_LEAST || advice->saves_ns < SHARE_LEAST * pass_ns)
			advice->count = 0;
		if (advice->count)
			qsort(advice->places, advice->count, sizeof(*advice->places), by_cost);
	}
	free(inside);
}

void advice_free(struct advice_list *list)
{
	for (unsigned i = 0; i < ADVICE_RULES; i++)
		free(list->rules[i].places);
}

static json_t *place_json(const struct model *model, const struct advice_place *place)
{
	const struct def_code *code = &model->definitions.codes[place->code];

	return json_pack("{s{s:s,s:o,s:s},s:o,s:o,s:o}", "site", "file", code->file, "line",
			 place->line ? json_integer(place->line) : json_null(), "function",
			 code->name, "per_pass", output_number(place->per_pass), "cost_ns",
			 output_number(place->cost_ns), "saves_ns", output_number(place->saves_ns));
}

json_t *advice_json(const struct advice_list *list)
{
	json_t *json = json_array();

	for (unsigned i = 0; i < ADVICE_RULES; i++) {
		const struct advice *advice = &list->rules[i];
		json_t *places;

		if (!advice->count)
			continue;
		places = json_array();
		for (uint32_t j = 0; j < advice->count; j++)
			json_array_append_new(places, place_json(list->model, &advice->places[j]));
		json_array_append_new(json, json_pack("{s:s,s:s,s:o,s:o,s:o,s:s,s:o}", "rule",
						      names[i], "text", texts[i], "per_pass",
						      output_number(advice->per_pass), "cost_ns",
						      output_number(advice->cost_ns), "saves_ns",
						      output_number(advice->saves_ns), "basis",
						      advice->published ? "published" : "measured",
						      "places", places));
	}
	return json;
}

/* ---------------------------------------------------------------- text */

#define COLUMNS_(COLUMN)                                                                           \
	COLUMN(RULE, NULL, "", COLUMN_TEXT, 0)                                                     \
	COLUMN(PLACE, NULL, "line", COLUMN_PATH, 0)                                                \
	COLUMN(MORE, NULL, "", COLUMN_TEXT, 2)                                                     \
	COLUMN(PER_PASS, NULL, "a pass", COLUMN_REAL, 0)                                           \
	COLUMN(COST, NULL, "costs", COLUMN_TIME, 0)                                                \
	COLUMN(SAVES, NULL, "saves at most", COLUMN_TIME, 0)

enum { COLUMNS_(COLUMN_NUMBER) COLUMNS };

static const struct column columns[] = { COLUMNS_(COLUMN_DESCRIPTION) };

static void add_row(struct table *table, const struct advice_list *list, unsigned rule)
{
	const struct advice *advice = &list->rules[rule];
	const struct def_code *code = &list->model->definitions.codes[advice->places[0].code];
	char *text, *file = origin_short(code->file);

	table_add_row(table);
	table_set_text(table, COLUMN_RULE, names[rule]);
	if (asprintf(&text, "%s:%u", file, advice->places[0].line) >= 0) {
		table_set_text(table, COLUMN_PLACE, text);
		free(text);
	}
	free(file);
	table_set_text(table, COLUMN_MORE, "");
	if (advice->count > 1 && asprintf(&text, "and %u more", advice->count - 1) >= 0) {
		table_set_text(table, COLUMN_MORE, text);
		free(text);
	}
	table_set_number(table, COLUMN_PER_PASS, advice->per_pass);
	table_set_number(table, COLUMN_COST, advice->cost_ns);
	table_set_number(table, COLUMN_SAVES, advice->saves_ns);
}

void advice_print(const struct advice_list *list)
{
	struct table *table = table_new(columns, COLUMNS);

	for (unsigned i = 0; i < ADVICE_RULES; i++)
		if (list->rules[i].count)
			add_row(table, list, i);
	if (table_rows(table)) {
		printf("\n%sadvice, for a pass of the main loop%s\n", output_style(STYLE_HEADING),
		       output_style(STYLE_PLAIN));
		table_print_text(table, "", stdout);
	}
	for (unsigned i = 0; i < ADVICE_RULES; i++) {
		char *text;

		if (!list->rules[i].count ||
		    asprintf(&text, "%s: %s%s", names[i], texts[i],
			     list->rules[i].published ? " (priced by published figures)" : "") < 0)
			continue;
		putchar(' ');
		output_wrapped(text, 1, 6);
		putchar('\n');
		free(text);
	}
	table_free(table);
}
