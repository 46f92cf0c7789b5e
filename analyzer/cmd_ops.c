/* cmd_ops.c: `tare ops`: the operator table alone. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/headline.h"
#include "analyzer/ledger_view.h"
#include "analyzer/mainloop.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/opview.h"
#include "analyzer/run.h"

#define TEXT_ROWS 40 /* unless told */

int cmd_ops(int argc, char **argv);

enum {
	OPTION_BY = 0x100,
	OPTION_SORT,
	OPTION_TOP,
	OPTION_NESTED,
	OPTION_LOOP,
	OPTION_PER_PASS,
	OPTION_DEVICE
};

static const struct argp_option ops_options[] = {
	{ "by", OPTION_BY, "KEYS", 0,
	  "Group by op, site, line (of your own code), module (Python's), thread, or "
	  "several with commas (op,site)",
	  0 },
	{ "sort", OPTION_SORT, "KEY", 0,
	  "total, share, fixed, wait, python, framework, library, launch, copy, memory, gil, first, pass, device, "
	  "calls, launches, name: the largest mean, sum or number first",
	  0 },
	{ "top", OPTION_TOP, "N", 0, "So many rows; 0: all (text: 40, else all)", 0 },
	{ "nested", OPTION_NESTED, NULL, 0,
	  "Also operators inside others: how often, and in which; their times are not known", 0 },
	{ "loop", OPTION_LOOP, "FILE:LINE", 0,
	  "All that is said of a pass is of this loop, not of the main loop", 0 },
	{ "per-pass", OPTION_PER_PASS, NULL, 0,
	  "Times in text are sums of a pass, not medians of a call (JSON and CSV have both)", 0 },
	{ "device", OPTION_DEVICE, NULL, 0,
	  "Also what devices did: kernels and device time a call (mean), from a kernel's launch to its start "
	  "(median); wants a trace with the layer gpu",
	  0 },
	{ 0 },
};

struct arguments {
	struct trace_options trace;
	unsigned group;
	const char *by; /* as told */
	const char *sort;
	const char *loop;
	long top;
	bool nested, device, per_pass;
};

static error_t parse_groups(struct arguments *arguments, const char *by, struct argp_state *state)
{
	static const struct {
		const char *name;
		unsigned group;
	} groups[] = { { "op", GROUP_OP },
		       { "site", GROUP_SITE },
		       { "line", GROUP_LINE },
		       { "module", GROUP_MODULE },
		       { "thread", GROUP_THREAD } };
	char *copy = strdup(by), *rest = copy, *word;
	error_t error = 0;

	arguments->by = by;
	arguments->group = 0;
	while (!error && (word = strsep(&rest, ","))) {
		unsigned i = 0;

		while (i < sizeof(groups) / sizeof(*groups) && strcmp(word, groups[i].name))
			i++;
		if (i == sizeof(groups) / sizeof(*groups))
			error = options_wrong(
				state, "--by is of op, site, line, module and thread, not '%s'",
				word);
		else
			arguments->group |= groups[i].group;
	}
	free(copy);
	return error;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &arguments->trace; return 0;
	case OPTION_BY: return parse_groups(arguments, argument, state);
	case OPTION_SORT:
		if (!op_view_sort(&(struct op_view){ .count = 1 }, argument))
			return options_wrong(state, "--sort is one of %s, not '%s'",
					     op_view_sort_keys(), argument);
		arguments->sort = argument;
		return 0;
	case OPTION_TOP:
		if (!options_number(argument, 0, &arguments->top))
			return options_wrong(state, "--top wants a number, not '%s'", argument);
		return 0;
	case OPTION_NESTED: arguments->nested = true; return 0;
	case OPTION_DEVICE: arguments->device = true; return 0;
	case OPTION_PER_PASS: arguments->per_pass = true; return 0;
	case OPTION_LOOP:
		if (!strchr(argument, ':'))
			return options_wrong(state, "--loop wants FILE:LINE, not '%s'", argument);
		arguments->loop = argument;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static void print_heading(const struct arguments *arguments, struct model *model)
{
	char *place = NULL, *safe = NULL, *line;

	if (model->main_loop) {
		const struct loop_node *loop = &model->loops.nodes[model->main_loop];

		place = loop_text(model, loop->code, loop->loop);
		safe = text_escape(place ? place : "?");
	}
	if (asprintf(&line, "by %s, %s%s%s", arguments->by,
		     arguments->per_pass ? "µs in a pass" : "median µs a call",
		     !safe               ? "" :
		     arguments->per_pass ? " of " :
					   "; a pass is of ",
		     safe ? safe : "") >= 0) {
		printf("%scost", output_style(STYLE_HEADING));
		output_wrapped(line, 4, 6);
		printf("%s\n", output_style(STYLE_PLAIN));
		free(line);
	}
	free(safe);
	free(place);
}

static int print(const struct arguments *arguments, struct run *run)
{
	struct model *model = &run->chosen->model;
	struct op_view view;
	long top = arguments->top >= 0                    ? arguments->top :
		   arguments->trace.format == FORMAT_TEXT ? TEXT_ROWS :
							    0;

	model->main_loop = arguments->loop ? main_loop_named(model, arguments->loop) :
					     main_loop_find(model);
	if (arguments->loop && !model->main_loop)
		return complain("no loop ran at %s", arguments->loop);
	if (arguments->per_pass && !main_loop_passes(model))
		return complain("there is no main loop, or its passes cannot be told apart: --loop "
				"FILE:LINE chooses one");
	op_view_make(&view, model, arguments->group,
		     (arguments->nested ? VIEW_NESTED : 0) |
			     (arguments->trace.format == FORMAT_TEXT ? VIEW_TEXT : 0));
	op_view_sort(&view, arguments->sort);
	view.per_pass = arguments->per_pass;
	view.device = arguments->device || arguments->trace.format != FORMAT_TEXT;
	struct table *table =
		op_view_table(&view, (unsigned)top, ledger_parts_of(model).program.wall);
	switch (arguments->trace.format) {
	case FORMAT_TEXT:
		headline_print(run);
		print_heading(arguments, model);
		table_print_text(table, NULL, stdout);
		if (op_view_hidden(&view, (unsigned)top))
			printf("… %u more; --top 0 shows all\n",
			       op_view_hidden(&view, (unsigned)top));
		if (arguments->device && !device_known(&model->devices))
			printf("what devices did is unknown: recorded without the layer gpu\n");
		break;
	case FORMAT_JSON: {
		json_t *json = json_object();

		json_object_set_new(json, "trace", headline_json(run));
		json_object_set_new(json, "ops", table_json(table));
		output_json(json);
		break;
	}
	case FORMAT_CSV: table_print_csv(table, stdout); break;
	}
	table_free(table);
	op_view_free(&view);
	return STATUS_FINE;
}

int cmd_ops(int argc, char **argv)
{
	static const struct argp_child children[] = { { &trace_options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = ops_options,
		.parser = parse,
		.args_doc = "FILE...",
		.children = children,
		.doc = "What each operator costs before it computes, by operator and place.",
	};
	struct arguments arguments = {
		.trace = TRACE_OPTIONS_NONE,
		.group = GROUP_OP | GROUP_SITE,
		.by = "op,site",
		.sort = "total",
		.top = -1,
	};
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
