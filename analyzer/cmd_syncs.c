/* cmd_syncs.c: `tare syncs`: where the program waits for the GPU, by line and loop; also as a gate. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/gate.h"
#include "analyzer/graph.h"
#include "analyzer/headline.h"
#include "analyzer/mainloop.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/run.h"
#include "analyzer/syncs.h"

#define TEXT_ROWS 40 /* of a section, unless told */

int cmd_syncs(int argc, char **argv);

enum { OPTION_LOOP = 0x100, OPTION_TOP, OPTION_FAIL_ON, OPTION_MAX, OPTION_ALLOW, OPTION_BASELINE };

static const struct argp_option syncs_options[] = {
	{ "loop", OPTION_LOOP, "FILE:LINE", 0, "Take this loop for the main loop", 0 },
	{ "top", OPTION_TOP, "N", 0, "So many rows of a section; 0: all (text: 40, else all)", 0 },
	{ "fail-on", OPTION_FAIL_ON, "LIST", 0,
	  "End with status 1 if there are findings of these classes or kinds: hot, periodic, once, unknown; "
	  "explicit, by-design; scalar-read, memory, ...",
	  1 },
	{ "max-per-pass", OPTION_MAX, "N", 0,
	  "End with status 1 if there are more hidden ones than that in a pass of the main loop",
	  1 },
	{ "allow", OPTION_ALLOW, "FILE", 0,
	  "Sites that are known: a pattern a line (train.py:44, lib/*.py:forward), then the reason",
	  1 },
	{ "baseline", OPTION_BASELINE, "OLD", 0,
	  "Only what this older trace does not have, or has less often, fails", 1 },
	{ 0 },
};

struct arguments {
	struct trace_options trace;
	struct gate_options gate;
	const char *loop;
	long top;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &arguments->trace; return 0;
	case OPTION_LOOP:
		if (!strchr(argument, ':'))
			return options_wrong(state, "--loop wants FILE:LINE, not '%s'", argument);
		arguments->loop = argument;
		return 0;
	case OPTION_TOP:
		if (!options_number(argument, 0, &arguments->top))
			return options_wrong(state, "--top wants a number, not '%s'", argument);
		return 0;
	case OPTION_FAIL_ON:
		if (!gate_parse_fail_on(&arguments->gate, argument))
			return options_wrong(
				state,
				"--fail-on is of hot, periodic, once, unknown, explicit, by-design and the kinds, not '%s'",
				argument);
		return 0;
	case OPTION_MAX: {
		char *end;

		arguments->gate.max_per_pass = strtod(argument, &end);
		if (end == argument || *end || !(arguments->gate.max_per_pass >= 0))
			return options_wrong(state, "--max-per-pass wants a number, not '%s'",
					     argument);
		return 0;
	}
	case OPTION_ALLOW: arguments->gate.allow = argument; return 0;
	case OPTION_BASELINE: arguments->gate.baseline = argument; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static void print_json(const struct run *run, const struct syncs *syncs, const struct gate *gate,
		       uint32_t top)
{
	json_t *json = json_object();

	json_object_set_new(json, "trace", headline_json(run));
	json_object_set_new(json, "main_loop",
			    syncs->main_loop ? main_loop_json(syncs->model, syncs->main_loop) :
					       json_null());
	json_object_set_new(json, "findings", syncs_json(syncs, SYNC_FINDINGS, top));
	json_object_set_new(json, "polling", syncs_json(syncs, 1u << SYNC_POLLING, top));
	json_object_set_new(json, "warm_up", syncs_json(syncs, 1u << SYNC_WARM_UP, top));
	json_object_set_new(json, "settings", settings_json(syncs));
	json_object_set_new(json, "cuda_graph", graph_json(syncs));
	json_object_set_new(json, "gate", gate_json(gate));
	output_json(json);
}

static void print_text(const struct run *run, const struct syncs *syncs, const struct gate *gate,
		       uint32_t top)
{
	uint32_t once =
		syncs_count(syncs, SYNC_HIDDEN, false) - syncs_count(syncs, SYNC_HIDDEN, true);

	headline_print(run);
	main_loop_print(syncs->model, syncs->main_loop);
	settings_print(syncs);
	putchar('\n');
	if (!syncs_count(syncs, SYNC_HIDDEN, false) && !settings_blinding(syncs->settings))
		printf("no hidden synchronisation\n");
	for (unsigned section = 0; section < SYNC_LEFT_OUT; section++) {
		if (section && syncs_count(syncs, (enum sync_section)section, false))
			putchar('\n');
		syncs_print_section(syncs, (enum sync_section)section,
				    section == SYNC_HIDDEN && once > 5, top);
	}
	if (once > 5)
		printf("  and %u that happened once: --format json has them\n", once);
	if (syncs_count(syncs, SYNC_HIDDEN, true)) {
		printf("\n%swhat to do%s\n", output_style(STYLE_HEADING),
		       output_style(STYLE_PLAIN));
		syncs_print_hints(syncs, top);
	}
	syncs_print_stacks(syncs, top);
	graph_print(syncs);
	gate_print(gate);
}

int cmd_syncs(int argc, char **argv)
{
	static const struct argp_child children[] = { { &trace_options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = syncs_options,
		.parser = parse,
		.args_doc = "FILE...",
		.children = children,
		.doc = "Where the program waits for the GPU without saying so: by line and loop, how often, how long, and "
		       "what to do.",
	};
	struct arguments arguments = {
		.trace = TRACE_OPTIONS_NONE,
		.gate = GATE_OPTIONS_NONE,
		.top = -1,
	};
	struct run run = { 0 };
	struct syncs syncs;
	struct gate gate = { 0 };
	int status;

	if (options_parse(&argp, 0, argc, argv, &arguments, &status) != 0)
		return status;
	bool text = arguments.trace.format == FORMAT_TEXT;
	uint32_t top = (uint32_t)(arguments.top >= 0 ? arguments.top : text ? TEXT_ROWS : 0);
	status = run_load(&run, &arguments.trace, argv[0]);
	if (status == STATUS_FINE) {
		struct model *model = &run.chosen->model;
		uint32_t loop = arguments.loop ? main_loop_named(model, arguments.loop) :
						 main_loop_find(model);

		if (arguments.loop && !loop)
			status = complain("no loop ran at %s", arguments.loop);
		syncs_make(&syncs, model, loop);
		if (status == STATUS_FINE)
			status = gate_run(&gate, &arguments.gate, &syncs, argv[0]);
		if (status != STATUS_WRONG) {
			struct table *table;

			switch (arguments.trace.format) {
			case FORMAT_TEXT: print_text(&run, &syncs, &gate, top); break;
			case FORMAT_JSON: print_json(&run, &syncs, &gate, top); break;
			case FORMAT_CSV:
				table = syncs_table(&syncs, ~(1u << SYNC_WARM_UP), false, top);
				table_print_csv(table, stdout);
				table_free(table);
				break;
			}
		}
		gate_free(&gate);
		syncs_free(&syncs);
	}
	run_free(&run);
	free(arguments.trace.files);
	return status;
}
