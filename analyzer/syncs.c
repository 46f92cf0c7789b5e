/* syncs.c: see syncs.h. */
#include "analyzer/syncs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/mainloop.h"
#include "analyzer/model.h"
#include "analyzer/native_stacks.h"
#include "analyzer/opview.h"

#define COLUMNS_(COLUMN)                                                                           \
	COLUMN(SITE, NULL, "", COLUMN_PATH, 0)                                                     \
	COLUMN(USER, NULL, "your line", COLUMN_PATH, 0)                                            \
	COLUMN(KIND, "kind", "kind", COLUMN_TEXT, 0)                                               \
	COLUMN(OP, "op", "operator", COLUMN_TEXT, 5)                                               \
	COLUMN(CALL, "call", NULL, COLUMN_TEXT, 0)                                                 \
	COLUMN(SIZE, "bytes", "bytes", COLUMN_BYTES, 8)                                            \
	COLUMN(SITE_FILE, "site.file", NULL, COLUMN_TEXT, 0)                                       \
	COLUMN(SITE_LINE, "site.line", NULL, COLUMN_ID, 0)                                         \
	COLUMN(SITE_FUNCTION, "site.function", NULL, COLUMN_TEXT, 0)                               \
	COLUMN(USER_FILE, "user_site.file", NULL, COLUMN_TEXT, 0)                                  \
	COLUMN(USER_LINE, "user_site.line", NULL, COLUMN_ID, 0)                                    \
	COLUMN(USER_FUNCTION, "user_site.function", NULL, COLUMN_TEXT, 0)                          \
	COLUMN(BACKWARD_FILE, "backward_site.file", NULL, COLUMN_TEXT, 0)                          \
	COLUMN(BACKWARD_LINE, "backward_site.line", NULL, COLUMN_ID, 0)                            \
	COLUMN(BACKWARD_FUNCTION, "backward_site.function", NULL, COLUMN_TEXT, 0)                  \
	COLUMN(TIMES, "count", "times", COLUMN_COUNT, 0)                                           \
	COLUMN(EXPLICIT, "explicit", NULL, COLUMN_FLAG, 0)                                         \
	COLUMN(DESIGN, "by_design", NULL, COLUMN_TEXT, 0)                                          \
	COLUMN(LOOP, NULL, "loop", COLUMN_PATH, 6)                                                 \
	COLUMN(LOOP_FILE, "loop.file", NULL, COLUMN_TEXT, 0)                                       \
	COLUMN(LOOP_LINE, "loop.line", NULL, COLUMN_ID, 0)                                         \
	COLUMN(LOOP_PASSES, "loop.passes", NULL, COLUMN_COUNT, 0)                                  \
	COLUMN(PER_PASS, "per_pass", "a pass", COLUMN_REAL, 0)                                     \
	COLUMN(MAIN_PER_PASS, "main_per_pass", "main loop", COLUMN_REAL, 4)                        \
	COLUMN(CLASS, "class", "", COLUMN_TEXT, 0)                                                 \
	COLUMN(PERIOD, "period", "every", COLUMN_COUNT, 7)                                         \
	COLUMN(WAIT, "wait_ns", "waits", COLUMN_TIME, 0)                                           \
	COLUMN(GAP, "gap_ns", "gap", COLUMN_TIME, 2)                                               \
	COLUMN(QUEUED, "queued", NULL, COLUMN_REAL, 0)                                             \
	COLUMN(WAITS_FOR, "waits_for", "waits for", COLUMN_TEXT, 10)                               \
	COLUMN(SHARE, "share", "share", COLUMN_PERCENT, 1)                                         \
	COLUMN(THREAD, "thread", "thread", COLUMN_TEXT, 9)                                         \
	COLUMN(HINT, "hint", NULL, COLUMN_TEXT, 0)                                                 \
	COLUMN(WARM_UP, "warm_up", NULL, COLUMN_FLAG, 0)                                           \
	COLUMN(LEFT_OUT, "left_out", NULL, COLUMN_TEXT, 0)

enum { COLUMNS_(COLUMN_NUMBER) COLUMNS };

static const struct column columns[] = { COLUMNS_(COLUMN_DESCRIPTION) };

static const char *const headings[SYNC_SECTIONS] = {
	"hidden synchronisation",
	"explicit: the program asks for it",
	"by design",
	"polling: asks whether the device is done, again and again",
	"left out",
	"warming up: memory taken once, and what libraries do before the main loop",
};

static double cost_of(const struct sync *sync)
{
	double cost = sync->verdict.wait_ns + sync->verdict.gap_ns;

	return isnan(cost) ? (double)sync->finding->count : cost;
}

static int compare(const void *left, const void *right)
{
	const struct sync *a = left, *b = right;
	bool once_a = a->verdict.class == CLASS_ONCE, once_b = b->verdict.class == CLASS_ONCE;
	double cost_a = cost_of(a), cost_b = cost_of(b);

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (once_a != once_b)
		return once_b ? -1 : 1;
	if (cost_a != cost_b)
		return cost_a > cost_b ? -1 : 1;
	return a->finding->first_time < b->finding->first_time ? -1 : 1;
}

static enum sync_section section_of(const struct sync *sync)
{
	const struct finding_key *key = &sync->finding->key;

	return key->kind == FINDING_POLLING ? SYNC_POLLING :
	       sync->verdict.warm_up        ? SYNC_WARM_UP :
	       key->design                  ? SYNC_DESIGN :
	       sync->left_out               ? SYNC_LEFT_OUT :
	       key->explicit                ? SYNC_EXPLICIT :
					      SYNC_HIDDEN;
}

void syncs_make(struct syncs *syncs, struct model *model, uint32_t main_loop)
{
	*syncs = (struct syncs){
		.model = model,
		.main_loop = main_loop,
		.settings = settings_find(model),
	};
	for (uint32_t i = 1; i < model->findings.count; i++) {
		const struct finding *finding = &model->findings.rows[i];
		struct sync sync = {
			.finding = finding,
			.verdict = finding_verdict(model, finding, main_loop),
			.left_out = settings_cause(syncs->settings, &finding->key),
		};

		if (finding->key.kind == FINDING_POLLING && !finding_spins(model, finding))
			continue;
		sync.section = section_of(&sync);
		if (sync.section != SYNC_LEFT_OUT)
			sync.left_out = SETTING_NONE;
		memory_grow(syncs->rows, syncs->count, syncs->room);
		syncs->rows[syncs->count++] = sync;
	}
	if (syncs->count)
		qsort(syncs->rows, syncs->count, sizeof(*syncs->rows), compare);
}

void syncs_free(struct syncs *syncs)
{
	free(syncs->rows);
	*syncs = (struct syncs){ 0 };
}

static bool is_shown(const struct sync *sync, unsigned sections, bool frequent)
{
	return sections >> sync->section & 1 && (!frequent || sync->verdict.class != CLASS_ONCE);
}

uint32_t syncs_count(const struct syncs *syncs, enum sync_section section, bool frequent)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < syncs->count; i++)
		count += is_shown(&syncs->rows[i], 1u << section, frequent);
	return count;
}

static void set_place(struct table *table, const struct model *model, unsigned column,
		      uint32_t code, uint32_t site)
{
	char *place = site_text(model, code, site);

	table_set_text(table, column, place);
	free(place);
}

static void set_site(struct table *table, const struct model *model, unsigned text, unsigned file,
		     uint32_t code, uint32_t site)
{
	uint32_t line = site_line(model, code, site);

	if (!code)
		return;
	if (text < COLUMNS)
		set_place(table, model, text, code, site);
	table_set_text(table, file, model->definitions.codes[code].file);
	if (line)
		table_set_number(table, file + 1, line);
	table_set_text(table, file + 2, model->definitions.codes[code].name);
}

static void set_call(struct table *table, const struct model *model, const struct finding_key *key)
{
	const struct def_function *functions = model->definitions.functions;
	char *text;

	if (!key->copy || key->copy == key->function)
		table_set_text(table, COLUMN_CALL, functions[key->function].name);
	else if (asprintf(&text, "%s, %s", functions[key->copy].name,
			  functions[key->function].name) >= 0) {
		table_set_text(table, COLUMN_CALL, text);
		free(text);
	}
}

static void set_loop(struct table *table, const struct model *model, const struct sync *sync)
{
	const struct finding_key *key = &sync->finding->key;
	char *text;
	uint32_t line;

	if (!key->loop)
		return;
	line = loop_line(model, key->loop_code, key->loop);
	text = loop_text(model, key->loop_code, key->loop);
	table_set_text(table, COLUMN_LOOP, text);
	table_set_text(table, COLUMN_LOOP_FILE, model->definitions.codes[key->loop_code].file);
	if (line)
		table_set_number(table, COLUMN_LOOP_LINE, line);
	table_set_number(table, COLUMN_LOOP_PASSES, sync->verdict.passes);
	free(text);
}

static void add_row(struct table *table, const struct model *model, const struct sync *sync)
{
	const struct finding *finding = sync->finding;
	const struct finding_key *key = &finding->key;
	const struct verdict *verdict = &sync->verdict;
	const struct def_thread *thread = &model->definitions.threads[key->thread];
	bool same = key->code == key->user_code && key->site == key->user_site;
	char name[80];

	table_add_row(table);
	snprintf(name, sizeof(name), "thread %s", thread->name);
	table_set_text(table, COLUMN_SITE, name);
	set_site(table, model, COLUMN_SITE, COLUMN_SITE_FILE, key->code, key->site);
	set_site(table, model, COLUMN_USER, COLUMN_USER_FILE, key->user_code, key->user_site);
	/* In a backward of the program's own, the line that waits for it. */
	if (key->backward_code && (same || !key->user_code))
		set_place(table, model, COLUMN_USER, key->backward_code, key->backward_site);
	else if (same)
		table_set_blank(table, COLUMN_USER);
	set_site(table, model, COLUMNS, COLUMN_BACKWARD_FILE, key->backward_code,
		 key->backward_site);
	table_set_text(table, COLUMN_KIND, finding_kind_names[key->kind]);
	table_set_text(table, COLUMN_OP, finding_op(model, finding));
	set_call(table, model, key);
	if (finding->bytes)
		table_set_number(table, COLUMN_SIZE, (double)finding->bytes);
	table_set_number(table, COLUMN_TIMES, (double)finding->count);
	table_set_number(table, COLUMN_EXPLICIT, key->explicit);
	table_set_text(table, COLUMN_DESIGN, design_reasons[key->design]);
	set_loop(table, model, sync);
	table_set_number(table, COLUMN_PER_PASS, verdict->per_pass);
	table_set_number(table, COLUMN_MAIN_PER_PASS, verdict->main_per_pass);
	table_set_text(table, COLUMN_CLASS, finding_class_names[verdict->class]);
	table_set_number(table, COLUMN_PERIOD, verdict->period);
	table_set_number(table, COLUMN_WAIT, verdict->wait_ns);
	table_set_number(table, COLUMN_GAP, verdict->gap_ns);
	table_set_number(table, COLUMN_SHARE, verdict->share);
	table_set_number(table, COLUMN_QUEUED, verdict->queued);
	if (verdict->earlier_work || verdict->own_work)
		table_set_text(table, COLUMN_WAITS_FOR,
			       verdict->earlier_work ? "earlier-work" : "own-work");
	snprintf(name, sizeof(name), "%u %s", thread->number, thread->name);
	table_set_text(table, COLUMN_THREAD, name);
	table_set_text(table, COLUMN_HINT, finding_hint(model, finding));
	table_set_number(table, COLUMN_WARM_UP, verdict->warm_up);
	table_set_text(table, COLUMN_LEFT_OUT, setting_name(sync->left_out));
}

struct table *syncs_table(const struct syncs *syncs, unsigned sections, bool frequent, uint32_t top)
{
	struct table *table = table_new(columns, COLUMNS);

	for (uint32_t i = 0; i < syncs->count && (!top || table_rows(table) < top); i++)
		if (is_shown(&syncs->rows[i], sections, frequent))
			add_row(table, syncs->model, &syncs->rows[i]);
	return table;
}

json_t *syncs_json(const struct syncs *syncs, unsigned sections, uint32_t top)
{
	struct table *table = syncs_table(syncs, sections, false, top);
	json_t *json = table_json(table);
	size_t row = 0;

	for (uint32_t i = 0; i < syncs->count && row < json_array_size(json); i++)
		if (is_shown(&syncs->rows[i], sections, false))
			json_object_set_new(json_array_get(json, row++), "native_stack",
					    native_stack_json(&syncs->model->definitions,
							      syncs->rows[i].finding->stack));
	table_free(table);
	return json;
}

void syncs_print_section(const struct syncs *syncs, enum sync_section section, bool frequent,
			 uint32_t top)
{
	uint32_t count = syncs_count(syncs, section, frequent);
	struct table *table;

	if (!count)
		return;
	table = syncs_table(syncs, 1u << section, frequent, top);
	printf("%s%s%s\n", output_style(STYLE_HEADING), headings[section],
	       output_style(STYLE_PLAIN));
	table_print_text(table, "", stdout);
	if (table_rows(table) < count)
		printf("  … and %u more: --top 0\n", count - table_rows(table));
	table_free(table);
}

/* The line that waits, and how the program got there. Free it. */
static char *both_places(const struct model *model, const struct finding_key *key)
{
	char *site = site_text(model, key->code, key->site);
	char *user = site_text(model, key->user_code, key->user_site), *out;

	if (!site || !user || !strcmp(site, user))
		out = strdup(site ? site : user ? user : "?");
	else if (asprintf(&out, "%s (%s)", site, user) < 0)
		out = strdup("?");
	free(site);
	free(user);
	return out;
}

void syncs_print_hints(const struct syncs *syncs, uint32_t top)
{
	const char *said[32];
	unsigned count = 0;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < syncs->count && (!top || rows < top); i++) {
		const struct finding *finding = syncs->rows[i].finding;
		const char *hint = finding_hint(syncs->model, finding);
		unsigned before = 0;

		if (syncs->rows[i].section != SYNC_HIDDEN ||
		    syncs->rows[i].verdict.class == CLASS_ONCE)
			continue;
		rows++;
		while (before < count && said[before] != hint)
			before++;
		if (!hint || before < count || count == 32)
			continue;
		said[count++] = hint;
		char *place = both_places(syncs->model, &finding->key);
		char *text, *safe;

		if (asprintf(&text, "%s %s: %s%s", place, finding_kind_names[finding->key.kind],
			     hint,
			     syncs->rows[i].verdict.earlier_work ?
				     ". It waits for GPU work queued before: at another place it would wait "
				     "as long" :
				     "") < 0)
			continue;
		safe = text_escape(text);
		putchar(' ');
		output_wrapped(safe, 1, 6);
		putchar('\n');
		free(safe);
		free(text);
		free(place);
	}
}

void syncs_print_stacks(const struct syncs *syncs, uint32_t top)
{
	struct definitions *definitions = &syncs->model->definitions;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < syncs->count && (!top || rows < top); i++) {
		const struct finding *finding = syncs->rows[i].finding;
		const struct def_thread *thread = &definitions->threads[finding->key.thread];

		if (!finding->stack || finding->count < 2 || syncs->rows[i].section > SYNC_EXPLICIT)
			continue;
		if (!rows++)
			printf("\n%snative stacks, each of the longest wait%s\n",
			       output_style(STYLE_HEADING), output_style(STYLE_PLAIN));
		char *place = site_text(syncs->model, finding->key.code, finding->key.site);
		char *name = text_escape(thread->name);

		printf("  %s %s, thread %u %s\n", place ? place : "?",
		       finding_kind_names[finding->key.kind], thread->number, name);
		free(name);
		free(place);
		native_stack_print(definitions, finding->stack, stdout);
	}
}
