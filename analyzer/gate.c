/* gate.c: see gate.h. */
#include "analyzer/gate.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/mainloop.h"
#include "analyzer/message.h"
#include "analyzer/opview.h"
#include "analyzer/run.h"

#define MORE_OFTEN 1.1 /* than in the baseline: a difference beyond chance */

/* A line of the file of --allow. */
struct allowed {
	char *pattern;
	unsigned line;
	uint64_t used;
};

/* ---------------------------------------------------------------- what is asked */

static bool parse_word(struct gate_options *options, const char *word)
{
	for (unsigned i = 0; i < CLASS_NAMES; i++)
		if (!strcmp(word, finding_class_names[i])) {
			options->classes |= 1u << i;
			return true;
		}
	for (unsigned i = 0; i < FINDING_KINDS; i++)
		if (!strcmp(word, finding_kind_names[i])) {
			options->kinds |= 1u << i;
			return true;
		}
	if (!strcmp(word, "explicit"))
		options->explicit = true;
	else if (!strcmp(word, "by-design"))
		options->by_design = true;
	else
		return false;
	return true;
}

bool gate_parse_fail_on(struct gate_options *options, const char *list)
{
	char *copy = strdup(list), *rest = copy, *word;
	bool fine = *list;

	while (fine && (word = strsep(&rest, ",")))
		fine = parse_word(options, word);
	free(copy);
	return fine;
}

/* ---------------------------------------------------------------- what is allowed */

static int read_allowed(struct gate *gate, const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;
	unsigned line = 0;

	if (!file)
		return complain("%s: %s", path, strerror(errno));
	while (getline(&text, &room, file) > 0) {
		size_t space = strspn(text, " \t\r\n"), length = strcspn(text + space, " \t\r\n");

		line++;
		if (!length || text[space] == '#')
			continue;
		memory_grow(gate->allowed, gate->allowed_count, gate->allowed_room);
		gate->allowed[gate->allowed_count++] = (struct allowed){
			.pattern = strndup(text + space, length),
			.line = line,
		};
	}
	int error = ferror(file) ? errno : 0;
	free(text);
	fclose(file);
	return error ? complain("%s: %s", path, strerror(error)) : STATUS_FINE;
}

/* Whether the pattern fits the end of "path/file.py:44" or "path/file.py:function". */
static bool fits(const char *pattern, const char *place)
{
	char *anywhere;
	bool found = !fnmatch(pattern, place, 0);

	if (!found && asprintf(&anywhere, "*/%s", pattern) >= 0) {
		found = !fnmatch(anywhere, place, 0);
		free(anywhere);
	}
	return found;
}

static bool fits_site(const struct model *model, const char *pattern, uint32_t code, uint32_t site)
{
	const struct def_code *definition = &model->definitions.codes[code];
	char *line, *function;
	bool found = false;

	if (!code)
		return false;
	if (asprintf(&line, "%s:%u", definition->file, site_line(model, code, site)) < 0)
		return false;
	if (asprintf(&function, "%s:%s", definition->file, definition->name) >= 0) {
		found = fits(pattern, line) || fits(pattern, function);
		free(function);
	}
	free(line);
	return found;
}

static bool is_allowed(struct gate *gate, const struct model *model, const struct finding_key *key)
{
	bool found = false;

	for (uint32_t i = 0; i < gate->allowed_count; i++) {
		struct allowed *allowed = &gate->allowed[i];

		if (fits_site(model, allowed->pattern, key->code, key->site) ||
		    fits_site(model, allowed->pattern, key->user_code, key->user_site)) {
			allowed->used++;
			found = true;
		}
	}
	return found;
}

/* ---------------------------------------------------------------- what an older trace had */

static bool same_text(const struct model *a, uint32_t code_a, const struct model *b,
		      uint32_t code_b)
{
	const struct def_code *left = &a->definitions.codes[code_a],
			      *right = &b->definitions.codes[code_b];
	const char *file_a = strrchr(left->file, '/'), *file_b = strrchr(right->file, '/');

	return !strcmp(left->name, right->name) &&
	       !strcmp(file_a ? file_a : left->file, file_b ? file_b : right->file);
}

/* Lines move and folders differ: functions, files and operators tell. */
static bool same_finding(const struct model *a, const struct sync *left, const struct model *b,
			 const struct sync *right)
{
	const struct finding_key *x = &left->finding->key, *y = &right->finding->key;
	const char *op_a = finding_op(a, left->finding), *op_b = finding_op(b, right->finding);

	return left->section == right->section && x->kind == y->kind &&
	       !strcmp(op_a ? op_a : "", op_b ? op_b : "") && same_text(a, x->code, b, y->code) &&
	       same_text(a, x->user_code, b, y->user_code);
}

static double rate_of(const struct sync *sync)
{
	double rate = sync->verdict.in_main ? sync->verdict.main_per_pass : sync->verdict.per_pass;

	return isnan(rate) ? 0 : rate;
}

/* As often as all that are the same in the older trace, in no worse a class. */
static bool is_known(const struct syncs *syncs, const struct sync *sync, const struct syncs *old)
{
	double now = 0, before = 0;
	bool as_bad = false;

	for (uint32_t i = 0; i < syncs->count; i++)
		if (same_finding(syncs->model, &syncs->rows[i], syncs->model, sync))
			now += rate_of(&syncs->rows[i]);
	for (uint32_t i = 0; i < old->count; i++)
		if (same_finding(old->model, &old->rows[i], syncs->model, sync)) {
			before += rate_of(&old->rows[i]);
			as_bad |= old->rows[i].verdict.class <= sync->verdict.class;
		}
	return as_bad && now <= MORE_OFTEN * before;
}

static int compare_with(struct syncs *syncs, const char *path, const char *command)
{
	struct trace_options options = TRACE_OPTIONS_NONE;
	char *files[] = { (char *)path };
	struct run run = { 0 };
	struct syncs old;
	int status;

	options.files = files;
	options.file_count = 1;
	status = run_load(&run, &options, command);
	if (status == STATUS_FINE) {
		syncs_make(&old, &run.chosen->model, main_loop_find(&run.chosen->model));
		for (uint32_t i = 0; i < syncs->count; i++)
			syncs->rows[i].known = is_known(syncs, &syncs->rows[i], &old);
		syncs_free(&old);
	}
	run_free(&run);
	return status;
}

/* ---------------------------------------------------------------- the verdict */

static bool fails(const struct gate_options *options, const struct sync *sync)
{
	bool often = sync->verdict.class != CLASS_ONCE;

	if (sync->allowed || sync->known)
		return false;
	switch (sync->section) {
	case SYNC_HIDDEN:
		return options->classes >> sync->verdict.class & 1 ||
		       (often && options->kinds >> sync->finding->key.kind & 1);
	case SYNC_EXPLICIT:
		return often &&
		       (options->explicit || options->kinds >> sync->finding->key.kind & 1);
	case SYNC_DESIGN: return often && options->by_design;
	case SYNC_POLLING: return options->kinds >> FINDING_POLLING & 1;
	default: return false;
	}
}

/* In a pass of the main loop; without one, of the loop where there are most. */
static double hidden_per_pass(const struct syncs *syncs)
{
	double most = 0;

	for (uint32_t i = 0; i < syncs->count; i++) {
		const struct finding_key *key = &syncs->rows[i].finding->key;
		double sum = 0;

		for (uint32_t j = 0; j < syncs->count; j++) {
			const struct sync *sync = &syncs->rows[j];
			bool counts = syncs->main_loop ?
					      sync->verdict.in_main :
					      sync->finding->key.loop_code == key->loop_code &&
						      sync->finding->key.loop == key->loop;

			if (counts && sync->section == SYNC_HIDDEN && !sync->allowed &&
			    !sync->known)
				sum += rate_of(sync);
		}
		most = fmax(most, sum);
		if (syncs->main_loop)
			break;
	}
	return most;
}

int gate_run(struct gate *gate, const struct gate_options *options, struct syncs *syncs,
	     const char *command)
{
	enum setting blinding;
	int status;

	gate->syncs = syncs;
	gate->asked = options->classes || options->kinds || options->explicit ||
		      options->by_design || options->max_per_pass >= 0;
	gate->max_per_pass = options->max_per_pass >= 0 ? options->max_per_pass : NAN;
	gate->per_pass = NAN;
	gate->allow = options->allow;
	if (gate->asked && (blinding = settings_blinding(syncs->settings)))
		return complain("%s was on: nothing can be said of what would wait without it",
				setting_name(blinding));
	if (options->allow && (status = read_allowed(gate, options->allow)) != STATUS_FINE)
		return status;
	for (uint32_t i = 0; i < syncs->count; i++)
		syncs->rows[i].allowed =
			is_allowed(gate, syncs->model, &syncs->rows[i].finding->key);
	if (options->baseline &&
	    (status = compare_with(syncs, options->baseline, command)) != STATUS_FINE)
		return status;
	if (!gate->asked && (options->allow || options->baseline))
		warn("%s decides nothing without --fail-on or --max-per-pass",
		     options->baseline ? "--baseline" : "--allow");
	for (uint32_t i = 0; i < syncs->count; i++) {
		syncs->rows[i].fails = fails(options, &syncs->rows[i]);
		gate->failed += syncs->rows[i].fails;
	}
	if (options->max_per_pass >= 0) {
		gate->per_pass = hidden_per_pass(syncs);
		gate->too_many = gate->per_pass > options->max_per_pass + 1e-9;
	}
	for (uint32_t i = 0; i < gate->allowed_count; i++)
		if (!gate->allowed[i].used)
			warn("%s:%u: '%s' allows nothing that was found", options->allow,
			     gate->allowed[i].line, gate->allowed[i].pattern);
	return gate->failed || gate->too_many ? STATUS_GATE : STATUS_FINE;
}

/* "train.py:44", of the user's line where there is one. */
static char *place_of(const struct gate *gate, const struct sync *sync)
{
	const struct finding_key *key = &sync->finding->key;

	return key->user_code ? site_text(gate->syncs->model, key->user_code, key->user_site) :
				site_text(gate->syncs->model, key->code, key->site);
}

json_t *gate_json(const struct gate *gate)
{
	json_t *json = json_object(), *failed = json_array(), *unused = json_array();

	for (uint32_t i = 0; i < gate->syncs->count; i++) {
		const struct sync *sync = &gate->syncs->rows[i];
		char *place;

		if (!sync->fails)
			continue;
		place = place_of(gate, sync);
		json_array_append_new(failed, json_pack("{s:s, s:s?, s:s}", "kind",
							finding_kind_names[sync->finding->key.kind],
							"site", place, "class",
							finding_class_names[sync->verdict.class]));
		free(place);
	}
	for (uint32_t i = 0; i < gate->allowed_count; i++)
		if (!gate->allowed[i].used)
			json_array_append_new(unused, json_string(gate->allowed[i].pattern));
	json_object_set_new(json, "passed",
			    gate->asked ? json_boolean(!gate->failed && !gate->too_many) :
					  json_null());
	json_object_set_new(json, "failed", failed);
	json_object_set_new(json, "per_pass", output_number(gate->per_pass));
	json_object_set_new(json, "max_per_pass", output_number(gate->max_per_pass));
	json_object_set_new(json, "unused_allowances", unused);
	return json;
}

void gate_print(const struct gate *gate)
{
	if (!gate->asked)
		return;
	printf("\n%s%s%s\n",
	       output_style(gate->failed || gate->too_many ? STYLE_WARNING : STYLE_HEADING),
	       gate->failed || gate->too_many ? "the gate failed" : "the gate passed",
	       output_style(STYLE_PLAIN));
	for (uint32_t i = 0; i < gate->syncs->count; i++) {
		const struct sync *sync = &gate->syncs->rows[i];
		char *place, *safe;

		if (!sync->fails)
			continue;
		place = place_of(gate, sync);
		safe = text_escape(place ? place : "?");
		printf("  %s  %s, %s\n", safe, finding_kind_names[sync->finding->key.kind],
		       finding_class_names[sync->verdict.class]);
		free(safe);
		free(place);
	}
	if (gate->too_many)
		printf("  %.2f a pass, where %.2f are allowed\n", gate->per_pass,
		       gate->max_per_pass);
}

void gate_free(struct gate *gate)
{
	for (uint32_t i = 0; i < gate->allowed_count; i++)
		free(gate->allowed[i].pattern);
	free(gate->allowed);
	*gate = (struct gate){ 0 };
}
