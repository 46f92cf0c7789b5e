/* still_open.c: see still_open.h. */
#include "analyzer/still_open.h"

#include <math.h>
#include <stdlib.h>

#include "analyzer/opview.h"
#include "analyzer/table.h"

enum {
	COLUMN_THREAD,
	COLUMN_NUMBER,
	COLUMN_NAME,
	COLUMN_OPEN,
	COLUMN_KIND,
	COLUMN_WHAT,
	COLUMN_FOR,
	COLUMN_PLACE,
	COLUMN_SITE_FILE,
	COLUMN_SITE_LINE,
	COLUMN_SITE_FUNCTION,
	COLUMN_USER,
	COLUMN_USER_FILE,
	COLUMN_USER_LINE,
	COLUMN_USER_FUNCTION,
	COLUMNS,
};

static const struct column columns[] = {
	[COLUMN_THREAD] = { NULL, "", COLUMN_TEXT, 0, false },
	[COLUMN_NUMBER] = { "thread", NULL, COLUMN_ID, 0, false },
	[COLUMN_NAME] = { "name", NULL, COLUMN_TEXT, 0, false },
	[COLUMN_OPEN] = { "open", "spans", COLUMN_COUNT, 3, false },
	[COLUMN_KIND] = { "kind", NULL, COLUMN_TEXT, 0, false },
	[COLUMN_WHAT] = { "innermost", "innermost", COLUMN_TEXT, 0, false },
	[COLUMN_FOR] = { "for_ns", "for", COLUMN_TIME, 0, false },
	[COLUMN_PLACE] = { NULL, "site", COLUMN_PATH, 0, false },
	[COLUMN_SITE_FILE] = { "site.file", NULL, COLUMN_TEXT, 0, false },
	[COLUMN_SITE_LINE] = { "site.line", NULL, COLUMN_ID, 0, false },
	[COLUMN_SITE_FUNCTION] = { "site.function", NULL, COLUMN_TEXT, 0, false },
	[COLUMN_USER] = { NULL, "your line", COLUMN_PATH, 2, false },
	[COLUMN_USER_FILE] = { "user_site.file", NULL, COLUMN_TEXT, 0, false },
	[COLUMN_USER_LINE] = { "user_site.line", NULL, COLUMN_ID, 0, false },
	[COLUMN_USER_FUNCTION] = { "user_site.function", NULL, COLUMN_TEXT, 0, false },
};

static const char *kind_name(const struct span *span)
{
	const struct trace_event_desc *description =
		span->kind < TRACE_EVENT_CODES ? &trace_event_descs[span->kind] : NULL;

	if (span->flags & SPAN_CALL)
		return "call";
	switch (span->kind) {
	case TRACE_FRAME: return "frame";
	case TRACE_SECTION:
	case TRACE_CALLBACK: return "section";
	case TRACE_OP:
	case TRACE_OP_SPAN: return "op";
	case TRACE_NODE: return "node";
	case TRACE_GIL: return "gil";
	default: return description && description->name ? description->name : "span";
	}
}

static const char *what(const struct model *model, const struct span *span)
{
	const struct definitions *definitions = &model->definitions;
	uint32_t index = span->node > TREE_OTHER ? model->tree.nodes[span->node].index : 0;

	if (span->flags & SPAN_CALL)
		return definitions->functions[index].name;
	switch (span->kind) {
	case TRACE_FRAME: return definitions->codes[span->code].name;
	case TRACE_SECTION: return "native code";
	case TRACE_CALLBACK: return "native code that calls Python";
	case TRACE_OP:
	case TRACE_OP_SPAN: return definitions->ops[index];
	case TRACE_NODE: return definitions->node_types[index];
	case TRACE_GIL: return "waiting for the GIL";
	case TRACE_TARE: return "tare";
	default: return "?";
	}
}

static void set_place(struct table *table, const struct model *model, uint32_t code, uint32_t site,
		      unsigned text, unsigned file)
{
	uint32_t line = site_line(model, code, site);
	char *place = site_text(model, code, site);

	if (code) {
		table_set_text(table, text, place);
		table_set_text(table, file, model->definitions.codes[code].file);
		if (line)
			table_set_number(table, file + 1, line);
		table_set_text(table, file + 2, model->definitions.codes[code].name);
	}
	free(place);
}

static struct table *make_table(const struct model *model)
{
	struct table *table = table_new(columns, COLUMNS);

	for (uint32_t i = 0; i < model->definitions.thread_count; i++) {
		const struct model_thread *thread = model->threads[i];
		char name[64];

		if (!thread || !thread->top)
			continue;
		const struct def_thread *definition = &model->definitions.threads[i];
		const struct span *span = &thread->stack[thread->top];
		const struct span *frame = &thread->stack[span->frame];

		table_add_row(table);
		snprintf(name, sizeof(name), "%u %s", definition->number, definition->name);
		table_set_text(table, COLUMN_THREAD, name);
		table_set_number(table, COLUMN_NUMBER, definition->number);
		table_set_text(table, COLUMN_NAME, definition->name);
		table_set_number(table, COLUMN_OPEN, thread->spans + thread->base + thread->unseen);
		table_set_text(table, COLUMN_KIND, kind_name(span));
		table_set_text(table, COLUMN_WHAT, what(model, span));
		table_set_number(table, COLUMN_FOR,
				 model_ns(model, (double)(model->end - span->enter)));
		set_place(table, model, frame->code, frame->site, COLUMN_PLACE, COLUMN_SITE_FILE);
		set_place(table, model, frame->user ? frame->code : frame->user_code,
			  frame->user ? frame->site : frame->user_site, COLUMN_USER,
			  COLUMN_USER_FILE);
	}
	return table;
}

uint64_t still_open_count(const struct model *model)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < model->definitions.thread_count; i++)
		if (model->threads[i])
			count += model->threads[i]->spans + model->threads[i]->unseen;
	return count;
}

json_t *still_open_json(const struct model *model)
{
	struct table *table = make_table(model);
	json_t *json = table_json(table);

	table_free(table);
	return json;
}

void still_open_print(const struct model *model)
{
	struct table *table = make_table(model);

	table_print_text(table, "still open at the end", stdout);
	table_free(table);
}
