/* cmd_report.c: `tare report`: what the program did with its time, on one page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/advice.h"
#include "analyzer/graph.h"
#include "analyzer/device_view.h"
#include "analyzer/headline.h"
#include "analyzer/ledger_view.h"
#include "analyzer/mainloop.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/opview.h"
#include "analyzer/still_open.h"
#include "analyzer/syncs.h"

#define TEXT_ROWS 15 /* unless told */

int cmd_report(int argc, char **argv);

#define SYNC_ROWS 8

enum { OPTION_TOP = 0x100, OPTION_LOOP };

static const struct argp_option report_options[] = {
	{ "top", OPTION_TOP, "N", 0, "So many operators; 0: all (text: 15, else all)", 0 },
	{ "loop", OPTION_LOOP, "FILE:LINE", 0, "Take this loop for the main loop", 0 },
	{ 0 },
};

struct arguments {
	struct trace_options trace;
	long top;
	const char *loop;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &arguments->trace; return 0;
	case OPTION_TOP:
		if (!options_number(argument, 0, &arguments->top))
			return options_wrong(state, "--top wants a number, not '%s'", argument);
		return 0;
	case OPTION_LOOP:
		if (!strchr(argument, ':'))
			return options_wrong(state, "--loop wants FILE:LINE, not '%s'", argument);
		arguments->loop = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static json_t *threads_json(const struct model *model)
{
	json_t *threads = json_array();

	for (uint32_t i = 0; i < model->definitions.thread_count; i++) {
		const struct model_thread *thread = model->threads[i];
		const struct def_thread *definition = &model->definitions.threads[i];
		struct ledger ledger;

		if (!thread)
			continue;
		ledger = ledger_of(&thread->account, (struct calls *)&model->calls);
		json_t *json = json_object();
		json_object_set_new(json, "thread", json_integer(definition->number));
		json_object_set_new(json, "tid", json_integer(definition->tid));
		json_object_set_new(json, "name", json_string(definition->name));
		json_object_set_new(json, "launches", json_integer((json_int_t)thread->launches));
		json_object_set_new(json, "ops", json_integer((json_int_t)thread->ops));
		json_object_set_new(json, "ledger", ledger_json(model, &ledger));
		json_array_append_new(threads, json);
	}
	return threads;
}

static json_t *ranges_json(const struct model *model)
{
	json_t *ranges = json_array();

	for (uint32_t i = 0; i < model->definitions.string_count; i++) {
		const struct range_total *total = &model->ranges[i];

		if (!total->count)
			continue;
		json_t *json = json_object();
		json_object_set_new(json, "name", json_string(model->definitions.strings[i]));
		json_object_set_new(json, "count", json_integer((json_int_t)total->count));
		json_object_set_new(json, "total_ns",
				    output_number(model_ns(model, (double)total->sum)));
		json_array_append_new(ranges, json);
	}
	return ranges;
}

static json_t *part_json(const struct model *model, const struct ledger *part)
{
	return part->wall > 0 ? ledger_json(model, part) : json_null();
}

/* The main loop first, then others that it might have been. */
static json_t *loops_json(struct model *model, uint32_t main_loop)
{
	json_t *loops = json_array();
	uint32_t others[16];
	uint32_t count = main_loop_candidates(model, main_loop, others, 16);

	if (main_loop)
		json_array_append_new(loops, main_loop_json(model, main_loop));
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(loops, main_loop_json(model, others[i]));
	for (size_t i = 0; i < json_array_size(loops); i++)
		json_object_set_new(json_array_get(loops, i), "main",
				    json_boolean(main_loop && !i));
	return loops;
}

static void print_json(const struct run *run, const struct table *ops, const struct syncs *syncs,
		       const struct advice_list *advice)
{
	struct model *model = &run->chosen->model;
	struct ledger_parts parts = ledger_parts_of(model);
	json_t *json = json_object();

	json_object_set_new(json, "trace", headline_json(run));
	json_object_set_new(json, "ledger", ledger_json(model, &parts.all));
	json_object_set_new(json, "startup", part_json(model, &parts.startup));
	json_object_set_new(json, "program", part_json(model, &parts.program));
	json_object_set_new(json, "exit", part_json(model, &parts.exit));
	json_object_set_new(json, "late_import_ns",
			    output_number(model_ns(model, parts.late_imports)));
	bool weighed = model->weights.source != WEIGHT_UNKNOWN;
	json_object_set_new(json, "own_weight_ns",
			    output_number(weighed ? model_ns(model, parts.all.weight) : NAN));
	json_object_set_new(json, "own_weight", own_weight_json(model, &parts.all, 1));
	json_object_set_new(json, "loops", loops_json(model, syncs->main_loop));
	json_object_set_new(json, "ops", table_json(ops));
	json_object_set_new(json, "syncs", syncs_json(syncs, SYNC_FINDINGS, 0));
	json_object_set_new(json, "settings", settings_json(syncs));
	json_object_set_new(json, "cuda_graph", graph_json(syncs));
	json_object_set_new(json, "advice", advice_json(advice));
	json_object_set_new(json, "devices", devices_json(model));
	json_object_set_new(json, "kernels", kernels_json(model));
	json_object_set_new(json, "thread_ledgers", threads_json(model));
	json_object_set_new(json, "ranges", ranges_json(model));
	json_object_set_new(json, "still_open", still_open_json(model));
	json_object_set_new(json, "processes", processes_json(run));
	json_object_set_new(json, "notes", notes_json(run));
	output_json(json);
}

static void print_ops(const struct table *ops, unsigned hidden)
{
	printf("\n%scost by operator, median µs a call%s\n", output_style(STYLE_HEADING),
	       output_style(STYLE_PLAIN));
	table_print_text(ops, "", stdout);
	if (hidden)
		printf("  … and %u more: tare ops, or --top 0\n", hidden);
}

static void print_main_loop(struct model *model, uint32_t main_loop)
{
	const struct loop_node *node = &model->loops.nodes[main_loop];
	struct ledger ledger;

	main_loop_print(model, main_loop);
	if (main_loop && node->passes_known && main_loop_ledger(model, main_loop, &ledger) &&
	    ledger.wall > 0) {
		ledger_print_pass(model, &ledger, (double)node->passes);
		own_weight_print(model, &ledger, (double)node->passes);
		putchar('\n');
	}
}

static void print_syncs(const struct syncs *syncs)
{
	if (!syncs_count(syncs, SYNC_HIDDEN, true))
		return;
	putchar('\n');
	syncs_print_section(syncs, SYNC_HIDDEN, true, SYNC_ROWS);
	syncs_print_hints(syncs, SYNC_ROWS);
}

static void print_text(const struct run *run, const struct table *ops, unsigned hidden,
		       const struct syncs *syncs, const struct advice_list *advice)
{
	struct model *model = &run->chosen->model;
	const struct process *process = run->chosen;

	headline_print(run);
	print_main_loop(model, syncs->main_loop);
	settings_print(syncs);
	ledger_print(model);
	devices_print(model);
	if (table_rows(ops))
		print_ops(ops, hidden);
	print_syncs(syncs);
	graph_print(syncs);
	advice_print(advice);
	if (still_open_count(model) && process->header.ended == TRACE_END_NONE) {
		putchar('\n');
		still_open_print(model);
	}
	if (run->count > 1) {
		putchar('\n');
		processes_print(run);
	}
	putchar('\n');
	notes_print(run);
}

static int print(const struct arguments *arguments, const struct run *run)
{
	struct model *model = &run->chosen->model;
	uint32_t main_loop = arguments->loop ? main_loop_named(model, arguments->loop) :
					       main_loop_find(model);
	struct syncs syncs;
	struct advice_list advice;
	bool text = arguments->trace.format == FORMAT_TEXT;
	unsigned top = (unsigned)(arguments->top >= 0 ? arguments->top : text ? TEXT_ROWS : 0);
	struct op_view view;

	if (arguments->loop && !main_loop)
		return complain("no loop ran at %s", arguments->loop);
	model->main_loop = main_loop;
	syncs_make(&syncs, model, main_loop);
	advice_make(&advice, model, &syncs);
	/* People want to see operators first; programs get all there is to group by. */
	op_view_make(&view, model, text ? GROUP_OP : GROUP_OP | GROUP_SITE, text ? VIEW_TEXT : 0);
	view.device = !text;
	struct table *ops = op_view_table(&view, top, ledger_parts_of(model).program.wall);
	switch (arguments->trace.format) {
	case FORMAT_TEXT: print_text(run, ops, op_view_hidden(&view, top), &syncs, &advice); break;
	case FORMAT_JSON: print_json(run, ops, &syncs, &advice); break;
	case FORMAT_CSV: table_print_csv(ops, stdout); break;
	}
	table_free(ops);
	op_view_free(&view);
	advice_free(&advice);
	syncs_free(&syncs);
	return STATUS_FINE;
}

int cmd_report(int argc, char **argv)
{
	static const struct argp_child children[] = { { &trace_options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = report_options,
		.parser = parse,
		.args_doc = "FILE...",
		.children = children,
		.doc = "Where the time went, and what each operator costs before it computes. Several files, or a "
		       "folder, are one run: the process that launches most is shown in full.",
	};
	struct arguments arguments = { .trace = TRACE_OPTIONS_NONE, .top = -1 };
	struct run run = { 0 };
	int status;

	if (options_parse(&argp, 0, argc, argv, &arguments, &status) != 0)
		return status;
	status = run_load(&run, &arguments.trace, argv[0]);
	if (status == STATUS_FINE)
		status = print(&arguments, &run);
	run_free(&run);
	free(arguments.trace.files);
	return status;
}
