/* ledger_view.c: see ledger_view.h. */
#include "analyzer/ledger_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/process_ledger.h"
#include "analyzer/table.h"

#define BAR_WIDTH  20
#define PART_SHARE 0.01 /* of the wall: less is not worth a column */
#define LINE_SHARE 5e-6 /* or a line */

/* Of a line that nothing was put into: whether that is because nothing could have been. */
static bool is_known(const struct model *model, unsigned line, double units)
{
	const struct definitions *definitions = &model->definitions;

	if (units > 0)
		return true;
	switch (line) {
	case LINE_python_user:
	case LINE_python_library: return !definitions_layer_off(definitions, "frames");
	case LINE_framework:
	case LINE_gil:
		return !definitions_layer_off(definitions, "ops") &&
		       !definitions_layer_off(definitions, "ops.section");
	case LINE_handover:
		return !definitions_layer_off(definitions, "ops") &&
		       definitions_layer_state(definitions, "ops.node") != LAYER_FAILED;
	case LINE_library: return model->has_library;
	case LINE_launch:
	case LINE_copy:
	case LINE_memory:
	case LINE_wait: return !definitions_layer_off(definitions, "cuda");
	default: return true;
	}
}

json_t *ledger_json(const struct model *model, const struct ledger *ledger)
{
	json_t *json = json_object();
	char key[40];

	json_object_set_new(json, "wall_ns", output_number(model_ns(model, ledger->wall)));
	for (unsigned line = 0; line < LINE_COUNT; line++) {
		bool known = is_known(model, line, ledger->lines[line]);

		snprintf(key, sizeof(key), "%s_ns", ledger_line_names[line]);
		json_object_set_new(json, key,
				    output_number(known ? model_ns(model, ledger->lines[line]) :
							  NAN));
	}
	return json;
}

json_t *own_weight_json(const struct model *model, const struct ledger *ledger, double passes)
{
	const struct weights *weights = &model->weights;
	const char *source = weights_source_text(weights);
	json_t *json = json_object();

	json_object_set_new(json, "source", source ? json_string(source) : json_null());
	json_object_set_new(json, "calibrated", json_boolean(weights->source > WEIGHT_START));
	json_object_set_new(json, "weight_ns",
			    output_number(source ? model_ns(model, ledger->weight / passes) : NAN));
	json_object_set_new(
		json, "uncertainty_ns",
		output_number(source ? model_ns(model, ledger->weight / passes * weights->error) :
				       NAN));
	json_object_set_new(json, "clamped_ns",
			    output_number(source ? model_ns(model, ledger->clamped / passes) :
						   NAN));
	return json;
}

void own_weight_print(const struct model *model, const struct ledger *ledger, double passes)
{
	char weight[TEXT_NUMBER_ROOM], error[TEXT_NUMBER_ROOM];
	double ns = model_ns(model, ledger->weight / passes);

	if (model->weights.source == WEIGHT_UNKNOWN || !(ns > 0))
		return;
	printf("  %stare's own weight, taken out: %s ± %s%s\n", output_style(STYLE_FAINT),
	       text_ns(weight, ns), text_ns(error, ns * model->weights.error),
	       output_style(STYLE_PLAIN));
}

struct ledger_parts ledger_parts_of(struct model *model)
{
	struct ledger_parts parts = { .all = process_ledger_of(model) };
	struct ledger before_exit = parts.all;
	const struct account *imports = &model->imports;

	if (model->program_end > model->startup_end) {
		imports = &model->program_imports;
		before_exit = process_ledger_sum(model, &model->program, imports);
	}
	if (model->startup_ended)
		parts.startup = process_ledger_sum(model, &model->startup, imports);
	parts.late_imports = ledger_of(imports, &model->calls).wall;
	if (parts.startup.wall < parts.all.wall * PART_SHARE)
		parts.startup = (struct ledger){ 0 };
	if (parts.all.wall - before_exit.wall < parts.all.wall * PART_SHARE)
		before_exit = parts.all;
	parts.exit = ledger_difference(&parts.all, &before_exit);
	parts.program = ledger_difference(&before_exit, &parts.startup);
	return parts;
}

enum {
	COLUMN_LINE,
	COLUMN_STARTUP,
	COLUMN_PROGRAM,
	COLUMN_SHARE,
	COLUMN_BAR,
	COLUMN_CALLS,
	COLUMN_EXIT,
	COLUMNS
};

static const struct column columns[] = {
	[COLUMN_LINE] = { NULL, "", COLUMN_TEXT, 0, false },
	[COLUMN_STARTUP] = { NULL, "start-up", COLUMN_TIME, 0, false },
	[COLUMN_PROGRAM] = { NULL, "program", COLUMN_TIME, 0, false },
	[COLUMN_SHARE] = { NULL, "share", COLUMN_PERCENT, 0, false },
	[COLUMN_BAR] = { NULL, "", COLUMN_BAR_TEXT, 2, false },
	[COLUMN_CALLS] = { NULL, "calls", COLUMN_COUNT, 3, false },
	[COLUMN_EXIT] = { NULL, "exit", COLUMN_TIME, 0, false },
};

/* `line` LINE_COUNT: all of them. */
static double units_of(const struct ledger *ledger, unsigned line)
{
	return !(ledger->wall > 0) ? NAN : line < LINE_COUNT ? ledger->lines[line] : ledger->wall;
}

static void add_line(struct table *table, const struct model *model,
		     const struct ledger_parts *parts, unsigned line)
{
	double share = units_of(&parts->program, line) / parts->program.wall;
	char bar[TEXT_BAR_ROOM], title[64];

	snprintf(title, sizeof(title), "  %s",
		 line < LINE_COUNT ? ledger_line_titles[line] : "all");
	table_add_row(table);
	table_set_text(table, COLUMN_LINE, title);
	if (line < LINE_COUNT && !is_known(model, line, parts->all.lines[line]))
		return;
	if (line < LINE_COUNT && parts->all.calls[line])
		table_set_number(table, COLUMN_CALLS, (double)parts->program.calls[line]);
	else
		table_set_blank(table, COLUMN_CALLS);
	table_set_number(table, COLUMN_STARTUP, model_ns(model, units_of(&parts->startup, line)));
	table_set_number(table, COLUMN_PROGRAM, model_ns(model, units_of(&parts->program, line)));
	table_set_number(table, COLUMN_EXIT, model_ns(model, units_of(&parts->exit, line)));
	table_set_number(table, COLUMN_SHARE, share);
	table_set_text(table, COLUMN_BAR, text_bar(bar, line < LINE_COUNT ? share : 0, BAR_WIDTH));
}

void ledger_print(struct model *model)
{
	struct ledger_parts parts = ledger_parts_of(model);
	struct table *table = table_new(columns, COLUMNS);

	for (unsigned line = 0; line < LINE_COUNT; line++)
		if (!is_known(model, line, parts.all.lines[line]) ||
		    parts.all.lines[line] > parts.all.wall * LINE_SHARE)
			add_line(table, model, &parts, line);
	add_line(table, model, &parts, LINE_COUNT);
	table_print_text(table, "where the time went", stdout);
	table_free(table);
}

void ledger_print_pass(const struct model *model, const struct ledger *ledger, double passes)
{
	static const struct column pass_columns[] = {
		{ NULL, "", COLUMN_TEXT, 0, false },
		{ NULL, "a pass", COLUMN_TIME, 0, false },
		{ NULL, "share", COLUMN_PERCENT, 0, false },
		{ NULL, "", COLUMN_BAR_TEXT, 2, false },
		{ NULL, "calls", COLUMN_REAL, 3, false },
	};
	/* Shares are of what the program took: tare's own is beside it. */
	double program = ledger->wall - ledger->lines[LINE_tare];
	struct table *table = table_new(pass_columns, sizeof(pass_columns) / sizeof(*pass_columns));

	for (unsigned line = 0; line <= LINE_COUNT; line++) {
		double units = units_of(ledger, line), share = units / program;
		char bar[TEXT_BAR_ROOM], title[64];

		if (line < LINE_COUNT && is_known(model, line, ledger->lines[line]) &&
		    ledger->lines[line] <= ledger->wall * LINE_SHARE)
			continue;
		snprintf(title, sizeof(title), "  %s",
			 line < LINE_COUNT ? ledger_line_titles[line] : "all");
		table_add_row(table);
		table_set_text(table, 0, title);
		if (line < LINE_COUNT && !is_known(model, line, ledger->lines[line]))
			continue;
		table_set_number(table, 1, model_ns(model, units / passes));
		if (line < LINE_COUNT && line != LINE_tare) {
			table_set_number(table, 2, share);
			table_set_text(table, 3, text_bar(bar, share, BAR_WIDTH));
		} else {
			table_set_blank(table, 2);
			table_set_blank(table, 3);
		}
		if (line < LINE_COUNT && ledger->calls[line])
			table_set_number(table, 4, (double)ledger->calls[line] / passes);
		else
			table_set_blank(table, 4);
	}
	table_print_text(table, "a pass of the main loop", stdout);
	table_free(table);
}
