/* mainloop.c: see mainloop.h. */
#include "analyzer/mainloop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/ledger_view.h"
#include "analyzer/model.h"
#include "analyzer/origin.h"
#include "analyzer/table.h"

#define PASSES_LEAST 3
#define TIE          0.9  /* who has that share of another's time has as much */
#define TIME_SHARE   0.45 /* of the time after the start-up: half, by the same measure */
#define OTHER_SHARE  0.1  /* a candidate */
#define DEVICE_BOUND 0.2  /* waits in a pass */
#define INNER_TIME   0.45 /* of the time of the loop around: half, as above */
#define INNER_SHARE  0.5  /* of its operators */
#define MODEL_SHARE  0.2  /* of the operators, where both call the same model */

#define FIRST_MEDIANS 2 /* a first pass that took more of them is told apart */

double main_loop_scope(const struct model *model)
{
	uint64_t start = model->startup_ended ? model->startup_end : model->open;
	uint64_t end = model->program_end > start ? model->program_end : model->end;

	double scope = end > start ? (double)(end - start) - (double)model->import_units : 0;

	/* Both accounts are sized alike once the trace was read. */
	if (model->startup_ended && model->program_end > start)
		scope -=
			(double)(model->program.units[LINE_tare] - model->startup.units[LINE_tare]);
	return scope > 0 ? scope : 0;
}

static bool is_longer(const struct loop_node *node, const struct loop_node *than)
{
	return TIE * (double)node->time > (double)than->time;
}

/* Of those directly in `parent`, the one with most time; of equal ones that which was entered first. */
static uint32_t longest_in(const struct model *model, uint32_t parent)
{
	const struct loop_node *nodes = model->loops.nodes;
	uint32_t longest = LOOP_NONE;

	/* They are in that order. */
	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++)
		if (nodes[i].parent == parent && nodes[i].time &&
		    (!longest || is_longer(&nodes[i], &nodes[longest])))
			longest = i;
	return longest;
}

/* A module of the program's that the passes of both call, not one of PyTorch's own. */
static bool same_model(const struct model *model, const struct loop_node *inner,
		       const struct loop_node *outer)
{
	for (uint32_t i = 0; i < inner->module_count; i++) {
		uint32_t code = inner->modules[i];

		for (uint32_t j = 0; j < outer->module_count; j++)
			if (code == outer->modules[j] &&
			    !strstr(model->definitions.codes[code].file, "/torch/nn/"))
				return true;
	}
	return false;
}

/*
 * Whether the main loop is further in: not where the inner one is part of a step, the layers of a model
 * or the parameters of an optimizer, nor where the step is around, as of loops over parts of a batch.
 * Operators of its own do not keep a loop that calls the model as the inner does: a prompt, then tokens.
 */
static bool leads_on(const struct model *model, const struct loop_node *inner,
		     const struct loop_node *outer)
{
	if (!outer->row_count || (double)inner->time < INNER_TIME * (double)outer->time ||
	    inner->in_step || (outer->optimizes && !inner->optimizes))
		return false;
	return inner->row_count >= INNER_SHARE * outer->row_count ||
	       (same_model(model, inner, outer) &&
		inner->row_count >= MODEL_SHARE * outer->row_count);
}

/* Not what the interpreter runs while it ends. */
static bool may_be_main(const struct model *model, const struct loop_node *node)
{
	bool at_exit = model->program_end && node->first >= model->program_end;

	return !at_exit && node->passes_known && node->passes >= PASSES_LEAST &&
	       !origin_is_runner(model->definitions.codes[node->code].file);
}

/* The outermost loop that has enough of the time; of several the one with most, of equal ones the first. */
static uint32_t outermost(const struct model *model)
{
	const struct loop_node *nodes = model->loops.nodes;
	double least = TIME_SHARE * main_loop_scope(model);
	uint32_t found = LOOP_NONE;

	/* Loops come after those around them. */
	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++) {
		uint32_t at = i;

		if (!may_be_main(model, &nodes[i]) || (double)nodes[i].time < least ||
		    (nodes[i].in_step && nodes[i].parent >= LOOP_FIRST))
			continue;
		while (at >= LOOP_FIRST && (at == i || at != found))
			at = nodes[at].parent;
		if (at == LOOP_MAIN_THREAD && (!found || is_longer(&nodes[i], &nodes[found])))
			found = i;
	}
	return found;
}

uint32_t main_loop_find(const struct model *model)
{
	const struct loop_node *nodes = model->loops.nodes;
	uint32_t found = outermost(model), inner;

	/* On the way a loop with few passes may be in between, such as one over two files. */
	for (uint32_t at = found;
	     found && (inner = longest_in(model, at)) && leads_on(model, &nodes[inner], &nodes[at]);
	     at = inner)
		/* One that turns once in each pass leaves out what happens around it. */
		if (may_be_main(model, &nodes[inner]) && nodes[inner].passes > nodes[found].passes)
			found = inner;
	return found;
}

uint32_t loop_line(const struct model *model, uint32_t code, uint32_t loop)
{
	return model->definitions.codes[code].loops->loops[loop].line;
}

char *loop_text(const struct model *model, uint32_t code, uint32_t loop)
{
	char *file = origin_short(model->definitions.codes[code].file), *out;

	if (asprintf(&out, "%s:%u", file, loop_line(model, code, loop)) < 0)
		out = NULL;
	free(file);
	return out;
}

static bool is_end_of(const char *path, const char *end, size_t length)
{
	size_t all = strlen(path);

	return all >= length && !memcmp(path + all - length, end, length) &&
	       (all == length || path[all - length - 1] == '/');
}

uint32_t main_loop_named(const struct model *model, const char *place)
{
	const char *colon = strrchr(place, ':');
	const struct loop_node *nodes = model->loops.nodes;
	uint32_t found = LOOP_NONE;

	if (!colon)
		return LOOP_NONE;
	unsigned long line = strtoul(colon + 1, NULL, 10);
	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++)
		if (loop_line(model, nodes[i].code, nodes[i].loop) == line &&
		    is_end_of(model->definitions.codes[nodes[i].code].file, place,
			      (size_t)(colon - place)) &&
		    (!found || nodes[i].time > nodes[found].time))
			found = i;
	return found;
}

uint32_t main_loop_candidates(const struct model *model, uint32_t chosen, uint32_t *found,
			      uint32_t room)
{
	const struct loop_node *nodes = model->loops.nodes;
	double least = OTHER_SHARE * main_loop_scope(model);
	uint32_t count = 0;

	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++) {
		uint32_t root = i, at;

		while (root >= LOOP_FIRST)
			root = nodes[root].parent;
		if (i == chosen || root != LOOP_MAIN_THREAD || !may_be_main(model, &nodes[i]) ||
		    (double)nodes[i].time < least)
			continue;
		for (at = count; at && nodes[found[at - 1]].time < nodes[i].time; at--)
			if (at < room)
				found[at] = found[at - 1];
		if (at < room)
			found[at] = i;
		count += count < room;
	}
	return count;
}

bool main_loop_ledger(struct model *model, uint32_t number, struct ledger *ledger)
{
	const struct loop_node *node = &model->loops.nodes[number];

	if (!node->account_known || node->account_missed)
		return false;
	*ledger = ledger_of(&node->account, &model->calls);
	return true;
}

double main_loop_ns(struct model *model, uint32_t number)
{
	const struct loop_node *node = &model->loops.nodes[number];
	double weight = (double)node->weight / WEIGHT_SCALE;

	return model_ns(model, fmax((double)node->time - weight, 0));
}

uint64_t main_loop_passes(const struct model *model)
{
	const struct loop_node *node = &model->loops.nodes[model->main_loop];

	return model->main_loop && node->passes_known ? node->passes : 0;
}

static double pass_mean_ns(struct model *model, uint32_t number)
{
	const struct loop_node *node = &model->loops.nodes[number];

	return node->passes_known ? main_loop_ns(model, number) / (double)node->passes : NAN;
}

static double first_pass_ns(const struct model *model, uint32_t number)
{
	const struct loop_node *node = &model->loops.nodes[number];

	return node->pass_times.count ? model_ns(model, (double)node->first_pass) : NAN;
}

/* Of what is left without tare's own. */
static double wait_share(const struct ledger *ledger)
{
	return ledger->lines[LINE_wait] / fmax(ledger->wall - ledger->lines[LINE_tare], 1e-9);
}

/* Waiting for the device is so much of the pass that less work on the host would not help. */
static const char *verdict(const struct ledger *ledger)
{
	return wait_share(ledger) >= DEVICE_BOUND ? "device-bound" : "overhead-bound";
}

json_t *main_loop_json(struct model *model, uint32_t number)
{
	const struct loop_node *node = &model->loops.nodes[number];
	const struct def_code *code = &model->definitions.codes[node->code];
	uint32_t line = loop_line(model, node->code, node->loop);
	json_t *json = json_object(), *pass = json_object();
	double passes = (double)node->passes;
	struct ledger ledger;

	json_object_set_new(json, "file", json_string(code->file));
	json_object_set_new(json, "line", line ? json_integer(line) : json_null());
	json_object_set_new(json, "function", json_string(code->name));
	json_object_set_new(json, "passes",
			    node->passes_known ? json_integer((json_int_t)node->passes) :
						 json_null());
	json_object_set_new(json, "total_ns", output_number(model_ns(model, (double)node->time)));
	json_object_set_new(json, "share",
			    json_real((double)node->time / fmax(main_loop_scope(model), 1)));
	json_object_set_new(
		pass, "median",
		output_number(model_ns(model, histogram_percentile(&node->pass_times, 0.5))));
	json_object_set_new(
		pass, "p10",
		output_number(model_ns(model, histogram_percentile(&node->pass_times, 0.1))));
	json_object_set_new(pass, "mean", output_number(pass_mean_ns(model, number)));
	json_object_set_new(pass, "first", output_number(first_pass_ns(model, number)));
	json_object_set_new(json, "pass_ns", pass);
	if (node->passes_known && main_loop_ledger(model, number, &ledger)) {
		json_object_set_new(json, "own_weight", own_weight_json(model, &ledger, passes));
		ledger.wall /= passes;
		for (unsigned i = 0; i < LINE_COUNT; i++)
			ledger.lines[i] /= passes;
		json_object_set_new(json, "ledger", ledger_json(model, &ledger));
		json_object_set_new(json, "wait_share", json_real(wait_share(&ledger)));
		json_object_set_new(json, "verdict", json_string(verdict(&ledger)));
	} else {
		json_object_set_new(json, "own_weight", json_null());
		json_object_set_new(json, "ledger", json_null());
		json_object_set_new(json, "wait_share", json_null());
		json_object_set_new(json, "verdict", json_null());
	}
	return json;
}

/* Free it. */
static char *about(struct model *model, uint32_t number)
{
	const struct loop_node *node = &model->loops.nodes[number];
	double median = model_ns(model, histogram_percentile(&node->pass_times, 0.5));
	double first = first_pass_ns(model, number);
	char time[TEXT_NUMBER_ROOM], count[TEXT_NUMBER_ROOM], *out, *escaped;
	char *place = loop_text(model, node->code, node->loop);
	struct ledger ledger;
	size_t size;
	FILE *text = open_memstream(&out, &size);

	fprintf(text, "%s in %s, ", place, model->definitions.codes[node->code].name);
	if (node->passes_known)
		fprintf(text, "%s passes, %s a pass", text_count(count, (double)node->passes),
			text_ns(time, pass_mean_ns(model, number)));
	else
		fprintf(text, "passes that cannot be told apart");
	if (node->passes_known && first > FIRST_MEDIANS * median)
		fprintf(text, " (the first %s, the median %s)", text_ns(time, first),
			text_ns(count, median));
	if (main_loop_ledger(model, number, &ledger) && ledger.wall > 0)
		fprintf(text, ", %s: waits are %.0f %% of it", verdict(&ledger),
			100 * wait_share(&ledger));
	fclose(text);
	free(place);
	escaped = text_escape(out);
	free(out);
	return escaped;
}

static char *other_loops(const struct model *model, const uint32_t *others, uint32_t count)
{
	char number[TEXT_NUMBER_ROOM], *out, *escaped;
	size_t size;
	FILE *text = open_memstream(&out, &size);

	for (uint32_t i = 0; i < count; i++) {
		const struct loop_node *node = &model->loops.nodes[others[i]];
		char *place = loop_text(model, node->code, node->loop);

		fprintf(text, "%s%s (%s passes)", i ? ", " : "", place,
			text_count(number, (double)node->passes));
		free(place);
	}
	fclose(text);
	escaped = text_escape(out);
	free(out);
	return escaped;
}

void main_loop_print(struct model *model, uint32_t number)
{
	uint32_t others[3];
	uint32_t count = main_loop_candidates(model, number, others, 3);
	char *text = number ? about(model, number) :
			      strdup("none: no loop has 3 passes and half of the time; --loop "
				     "FILE:LINE chooses one");

	printf("%smain loop%s", output_style(STYLE_HEADING), output_style(STYLE_PLAIN));
	output_wrapped(text, 9, 10);
	putchar('\n');
	free(text);
	if (!count)
		return;
	text = other_loops(model, others, count);
	printf("%sothers:", output_style(STYLE_FAINT));
	output_wrapped(text, 7, 10);
	printf("%s\n", output_style(STYLE_PLAIN));
	free(text);
}
