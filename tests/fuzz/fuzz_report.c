/*
 * fuzz_report.c: any events and definitions: the model is made, its ledgers add up, its tables print.
 */
#include <math.h>

#include "analyzer/mainloop.h"
#include "analyzer/native_stacks.h"
#include "analyzer/opview.h"
#include "analyzer/process_ledger.h"
#include "analyzer/still_open.h"
#include "analyzer/syncs.h"
#include "tests/fuzz/repair.h"

static void check_ledger(struct ledger ledger)
{
	double sum = 0;

	for (unsigned line = 0; line < LINE_COUNT; line++) {
		check(ledger.lines[line] >= 0);
		sum += ledger.lines[line];
	}
	check(fabs(sum - ledger.wall) <= 1e-6 * fabs(ledger.wall) + 1);
}

static void print(struct model *model, unsigned group, FILE *out)
{
	struct op_view view;

	op_view_make(&view, model, group, true);
	struct table *table = op_view_table(&view, 0, 1e9);
	table_print_text(table, "title", out);
	table_print_csv(table, out);
	json_t *json = table_json(table);
	check(json_dumpf(json, out, 0) == 0);
	json_decref(json);
	table_free(table);
	op_view_free(&view);
	rewind(out);
}

static void print_syncs(struct model *model)
{
	struct syncs syncs;

	syncs_make(&syncs, model, main_loop_find(model));
	json_decref(syncs_json(&syncs, ~0u, 0));
	for (uint32_t i = 0; i < model->definitions.stack_room && i < 8; i++)
		json_decref(native_stack_json(&model->definitions, i));
	syncs_free(&syncs);
}

static void read_trace(const char *path, size_t size, FILE *out)
{
	char message[128];

	(void)size;
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	if (reader) {
		struct model model = { 0 };

		model_load(&model, reader);
		check_ledger(process_ledger_of(&model));
		for (uint32_t i = 0; i < model.definitions.thread_count; i++)
			if (model.threads[i])
				check_ledger(ledger_of(&model.threads[i]->account, &model.calls));
		print(&model, GROUP_OP | GROUP_SITE, out);
		print(&model, GROUP_LINE | GROUP_MODULE | GROUP_THREAD, out);
		json_decref(still_open_json(&model));
		print_syncs(&model);
		model_free(&model);
		trace_close(reader);
	}
}
