/* findings.c: see findings.h. */
#include "analyzer/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/mainloop.h"
#include "analyzer/model.h"
#include "analyzer/origin.h"

#define WAITS_NS      10e3 /* on average: less is no wait to speak of */
#define POLLS         1000 /* queries in a pass: fewer are what programs and allocators do */
#define PERIOD_AGREES 0.1  /* intervals are a period where they agree so well */

const char *const finding_kind_names[FINDING_KINDS] = {
#define KIND(NAME, name, title) name,
#include "analyzer/waits.def"
#undef KIND
};

const char *const finding_kind_titles[FINDING_KINDS] = {
#define KIND(NAME, name, title) title,
#include "analyzer/waits.def"
#undef KIND
};

const char *const design_files[DESIGN_COUNT] = {
#define DESIGN(NAME, file, why) [DESIGN_##NAME] = file,
#include "analyzer/designs.def"
#undef DESIGN
};

const char *const design_reasons[DESIGN_COUNT] = {
#define DESIGN(NAME, file, why) [DESIGN_##NAME] = why,
#include "analyzer/designs.def"
#undef DESIGN
};

const char *const finding_class_names[CLASS_NAMES] = { "hot", "periodic", "once", "unknown" };

void findings_free(struct findings *findings)
{
	for (uint32_t i = 0; i < findings->count; i++)
		free(findings->rows[i].classes);
	free(findings->rows);
	hash_free(&findings->index);
	*findings = (struct findings){ 0 };
}

/* ---------------------------------------------------------------- while the trace is read */

static uint32_t row_of(struct findings *findings, const struct finding_key *key)
{
	const uint32_t *words = (const uint32_t *)key;
	uint64_t mixed = 0;
	uint32_t hash, probe, found;

	for (unsigned i = 0; i < sizeof(*key) / sizeof(*words); i++)
		mixed = hash_mix(mixed, words[i]);
	hash = probe = (uint32_t)(mixed ^ mixed >> 32);
	while ((found = hash_next(&findings->index, hash, &probe)))
		if (!memcmp(&findings->rows[found].key, key, sizeof(*key)))
			return found;
	if (!findings->count) {
		memory_grow(findings->rows, 1, findings->room);
		findings->count = 1;
	}
	/* Beyond so many places they are one of that kind. */
	if (findings->count >= FINDINGS_MAX) {
		const struct finding_key rest = { .kind = key->kind, .explicit = key->explicit };

		if (memcmp(&rest, key, sizeof(rest)))
			return row_of(findings, &rest);
	}
	memory_grow(findings->rows, findings->count, findings->room);
	findings->rows[findings->count].key = *key;
	hash_add(&findings->index, hash, findings->count);
	return findings->count++;
}

static void add_interval(struct finding_loop *in, uint64_t pass)
{
	uint64_t last = in->last_pass, interval = pass > last ? pass - last : last - pass;

	if (!in->passes) {
		in->first_pass = pass;
	} else {
		if (!in->interval_most || interval < in->interval_least)
			in->interval_least = interval;
		if (interval > in->interval_most)
			in->interval_most = interval;
	}
	in->last_pass = pass;
	in->passes++;
}

/* A wait in a loop, in its pass that runs now. */
static void add_loop(struct finding *finding, uint32_t node, uint64_t pass)
{
	struct finding_loop *in = finding->loops;

	while (in < finding->loops + finding->loop_count && in->node != node)
		in++;
	if (in == finding->loops + finding->loop_count) {
		if (finding->loop_count == FINDING_LOOPS_MAX)
			return;
		finding->loop_count++;
		*in = (struct finding_loop){ .node = node };
	}
	in->count++;
	if (!in->passes || pass != in->last_pass)
		add_interval(in, pass);
}

static void add_loops(struct finding *finding, const struct model_thread *thread)
{
	for (uint32_t i = 0; i < thread->run_count; i++) {
		/* Of a loop that recurses the innermost run is as good as any. */
		if (!thread->runs[i].recursive)
			add_loop(finding, thread->runs[i].node, thread->runs[i].pass);
	}
}

/* The thread whose loops a wait is in: on autograd's threads, of who waits in backward(). */
static const struct model_thread *looping(const struct model *model,
					  const struct model_thread *thread)
{
	if (thread->run_count)
		return thread;
	if (thread->works_for)
		return thread->works_for;
	for (uint32_t i = 0; i < thread->context_count; i++)
		if (thread->contexts[i].key.kind == OP_KIND_NODE && model->main)
			return model->main;
	return thread;
}

uint32_t findings_add(struct model *model, const struct model_thread *thread,
		      const struct finding_key *given, uint64_t bytes, uint64_t time)
{
	const struct model_thread *loops = looping(model, thread);
	struct finding_key key = *given;

	if (loops->run_count) {
		const struct loop_run *run = &loops->runs[loops->run_count - 1];

		key.loop_code = model->loops.nodes[run->node].code;
		key.loop = model->loops.nodes[run->node].loop;
	}
	uint32_t number = row_of(&model->findings, &key);
	struct finding *finding = &model->findings.rows[number];

	if (!finding->count++)
		finding->first_time = time;
	finding->last_time = time;
	if (bytes > finding->bytes)
		finding->bytes = bytes;
	add_loops(finding, loops);
	if (thread->works_for && thread->works_for != loops)
		add_loops(finding, thread->works_for);
	else if (model->main && model->main != loops) {
		/* A thread of its own: what happens while a pass of the main thread's runs. */
		add_loops(finding, model->main);
		finding->apart |= loops->run_count > 0;
	}
	return number;
}

static void add_class(struct finding *finding, const struct finding_class *calls)
{
	uint32_t i = 0, class = calls->class;

	while (i < finding->class_count && finding->classes[i].class != class)
		i++;
	if (i == finding->class_count) {
		/* Durations of few: then the first stands for the rest. */
		if (i == FINDING_CLASSES_MAX)
			i = 0;
		else
			finding->class_count++;
		memory_grow(finding->classes, i, finding->class_room);
		if (i)
			finding->classes[i] = (struct finding_class){ .class = class };
		else if (!finding->classes[0].class)
			finding->classes[0].class = class;
	}
	finding->classes[i].count += calls->count;
	finding->classes[i].sum += calls->sum;
}

void findings_add_call(struct findings *findings, uint32_t number, uint32_t class,
		       uint64_t duration)
{
	add_class(&findings->rows[number], &(struct finding_class){ class, 1, duration });
}

void findings_add_stack(struct findings *findings, uint32_t number, uint32_t stack,
			uint64_t duration)
{
	struct finding *finding = &findings->rows[number];

	if (!stack || (finding->stack && duration <= finding->stack_duration))
		return;
	finding->stack = stack;
	finding->stack_duration = duration;
}

/* ---------------------------------------------------------------- its end */

static bool is_passed_over(const struct model *model, const struct loop_node *node)
{
	const struct def_code *code = &model->definitions.codes[node->code];

	return origin_is_runner(code->file) || (!code->user && !node->launches);
}

/* The node of the nearest loop where most of its waits are. */
static uint32_t nearest_node(const struct model *model, const struct finding *finding)
{
	const struct finding_loop *most = NULL;

	for (uint32_t i = 0; i < finding->loop_count; i++) {
		const struct finding_loop *in = &finding->loops[i];
		const struct loop_node *node = &model->loops.nodes[in->node];

		if (node->code == finding->key.loop_code && node->loop == finding->key.loop &&
		    (!most || in->count > most->count))
			most = in;
	}
	return most ? most->node : LOOP_NONE;
}

static void pass_over_loops(const struct model *model, struct finding *finding)
{
	const struct loop_node *nodes = model->loops.nodes;
	uint32_t nearest = nearest_node(model, finding), at = nearest;

	if (!nearest)
		return;
	finding->in_library = !model->definitions.codes[finding->key.loop_code].user;
	while (at >= LOOP_FIRST && is_passed_over(model, &nodes[at]))
		at = nodes[at].parent;
	/* Threads of their own have such a loop for their main loop. */
	if (at == LOOP_OTHER_THREADS || at == nearest)
		return;
	finding->key.loop_code = at >= LOOP_FIRST ? nodes[at].code : 0;
	finding->key.loop = at >= LOOP_FIRST ? nodes[at].loop : 0;
}

/* The same loop of two rows: mostly the same passes. */
static void join_loops(struct finding *into, const struct finding_loop *from)
{
	struct finding_loop *in = into->loops;

	while (in < into->loops + into->loop_count && in->node != from->node)
		in++;
	if (in == into->loops + into->loop_count) {
		if (into->loop_count < FINDING_LOOPS_MAX)
			into->loops[into->loop_count++] = *from;
		return;
	}
	in->count += from->count;
	if (from->passes > in->passes) {
		in->passes = from->passes;
		in->interval_least = from->interval_least;
		in->interval_most = from->interval_most;
	}
}

static void join(struct findings *findings, uint32_t number, struct finding *from)
{
	struct finding *into = &findings->rows[number];

	if (!into->count) {
		*into = *from;
		from->classes = NULL;
		return;
	}
	into->count += from->count;
	into->bytes = from->bytes > into->bytes ? from->bytes : into->bytes;
	if (from->first_time < into->first_time)
		into->first_time = from->first_time;
	if (from->last_time > into->last_time)
		into->last_time = from->last_time;
	into->gap += from->gap;
	into->queued.all += from->queued.all;
	into->queued.own += from->queued.own;
	into->in_library &= from->in_library;
	for (uint32_t i = 0; i < from->loop_count; i++)
		join_loops(into, &from->loops[i]);
	for (uint32_t i = 0; i < from->class_count; i++)
		add_class(into, &from->classes[i]);
	findings_add_stack(findings, number, from->stack, from->stack_duration);
}

void findings_finish(struct model *model)
{
	struct findings old = model->findings;

	model->findings = (struct findings){ 0 };
	for (uint32_t i = 1; i < old.count; i++) {
		pass_over_loops(model, &old.rows[i]);
		join(&model->findings, row_of(&model->findings, &old.rows[i].key), &old.rows[i]);
	}
	findings_free(&old);
}

/* ---------------------------------------------------------------- once the trace was read */

/* Passes of a loop wherever it ran; NAN where one of them is not known. */
static double passes_of(const struct model *model, uint32_t code, uint32_t loop)
{
	double passes = 0;

	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++) {
		const struct loop_node *node = &model->loops.nodes[i];

		if (node->code != code || node->loop != loop)
			continue;
		if (!node->passes_known)
			return NAN;
		passes += (double)node->passes;
	}
	return passes;
}

/* What a finding has in all nodes of its nearest loop. */
static struct finding_loop in_nearest(const struct model *model, const struct finding *finding)
{
	struct finding_loop sum = { 0 };

	for (uint32_t i = 0; i < finding->loop_count; i++) {
		const struct finding_loop *in = &finding->loops[i];
		const struct loop_node *node = &model->loops.nodes[in->node];

		if (node->code != finding->key.loop_code || node->loop != finding->key.loop)
			continue;
		if (!sum.passes)
			sum = *in;
		else {
			sum.count += in->count;
			sum.passes += in->passes;
			if (in->interval_least < sum.interval_least)
				sum.interval_least = in->interval_least;
			if (in->interval_most > sum.interval_most)
				sum.interval_most = in->interval_most;
		}
	}
	return sum;
}

static void classify(struct verdict *verdict, const struct finding_loop *in, double passes)
{
	double mean = (double)(in->interval_least + in->interval_most) / 2;

	if (in->count < 2 || (in->passes < 2 && passes >= 2)) {
		verdict->class = CLASS_ONCE;
	} else if (isnan(passes)) {
		verdict->class = CLASS_UNKNOWN;
	} else if (2 * (double)in->passes >= passes) {
		verdict->class = passes >= 2 ? CLASS_HOT : CLASS_ONCE;
	} else {
		verdict->class = CLASS_PERIODIC;
		/* Passes in a row, and then no more, are no period. */
		if ((double)(in->interval_most - in->interval_least) <= PERIOD_AGREES * mean &&
		    mean >= 2)
			verdict->period = mean;
	}
}

/*
 * What ran before the main loop began: of a library's loop, such as that of model.to(), it happened once
 * for the program's own code; of the program's own loop it is not known how often.
 */
static bool is_set_up(const struct model *model, const struct finding *finding,
		      const struct verdict *verdict, uint32_t main_loop)
{
	return main_loop && finding->key.loop &&
	       finding->last_time < model->loops.nodes[main_loop].first &&
	       (finding->in_library || verdict->class == CLASS_UNKNOWN);
}

static void classify_nearest(struct model *model, const struct finding *finding,
			     struct verdict *verdict)
{
	if (finding->key.loop) {
		struct finding_loop nearest = in_nearest(model, finding);

		verdict->passes = passes_of(model, finding->key.loop_code, finding->key.loop);
		verdict->per_pass = (double)nearest.count / verdict->passes;
		classify(verdict, &nearest, verdict->passes);
	} else if (finding->count > 1 && definitions_layer_off(&model->definitions, "frames")) {
		verdict->class = CLASS_UNKNOWN;
	}
}

/*
 * What it has in the main loop; NULL: nothing. A thread with loops of its own may go its own ways: what it
 * does belongs to passes of the main loop only where it comes with most of them, or at regular distances.
 */
static const struct finding_loop *classify_main(struct model *model, const struct finding *finding,
						uint32_t main_loop, struct verdict *verdict)
{
	const struct loop_node *node = &model->loops.nodes[main_loop];
	double passes = main_loop && node->passes_known ? (double)node->passes : NAN;
	const struct finding_loop *in = NULL;
	struct verdict by_main = *verdict;

	for (uint32_t i = 0; main_loop && i < finding->loop_count; i++)
		if (finding->loops[i].node == main_loop)
			in = &finding->loops[i];
	if (!in)
		return NULL;
	by_main.period = NAN;
	classify(&by_main, in, passes);
	if (finding->apart && verdict->class != CLASS_UNKNOWN && by_main.class != CLASS_HOT &&
	    isnan(by_main.period))
		return NULL;
	by_main.in_main = true;
	by_main.main_per_pass = (double)in->count / passes;
	*verdict = by_main;
	return in;
}

struct verdict finding_verdict(struct model *model, const struct finding *finding,
			       uint32_t main_loop)
{
	struct verdict verdict = {
		.class = CLASS_ONCE,
		.per_pass = NAN,
		.main_per_pass = NAN,
		.period = NAN,
		.passes = NAN,
		.share = NAN,
		.gap_ns = model_ns(model, (double)finding->gap),
	};

	const struct finding_loop *in_main;

	classify_nearest(model, finding, &verdict);
	in_main = classify_main(model, finding, main_loop, &verdict);
	for (uint32_t i = 0; i < finding->class_count; i++) {
		const struct finding_class *class = &finding->classes[i];
		double cost;

		verdict.wait_ns +=
			model_ns(model, calls_split(&model->calls, class->class, class->count,
						    (double)class->sum, &cost));
	}
	/* How long a query takes says nothing. */
	if (finding->key.kind == FINDING_POLLING)
		verdict.wait_ns = verdict.gap_ns = NAN;
	if (in_main)
		verdict.share = (verdict.wait_ns + verdict.gap_ns) * (double)in_main->count /
				(double)finding->count / main_loop_ns(model, main_loop);
	verdict.queued = (double)finding->queued.all / (double)finding->count;
	if (finding->queued.all && verdict.wait_ns >= WAITS_NS * (double)finding->count) {
		verdict.earlier_work = 2 * finding->queued.own <= finding->queued.all;
		verdict.own_work = !verdict.earlier_work;
	}
	verdict.warm_up = (finding->key.kind == FINDING_MEMORY && verdict.class == CLASS_ONCE) ||
			  is_set_up(model, finding, &verdict, main_loop);
	if (verdict.warm_up && verdict.class == CLASS_UNKNOWN)
		verdict.class = CLASS_ONCE;
	return verdict;
}

bool finding_spins(const struct model *model, const struct finding *finding)
{
	const struct finding_key *key = &finding->key;
	uint64_t runs = 0, most = key->loop ? 0 : finding->count;

	/* Without frames neither line nor loop is known. */
	if (!key->code || definitions_layer_off(&model->definitions, "frames"))
		return false;
	for (uint32_t i = 0; i < finding->loop_count; i++) {
		const struct finding_loop *in = &finding->loops[i];
		const struct loop_node *node = &model->loops.nodes[in->node];

		if (in->passes && in->count / in->passes > most)
			most = in->count / in->passes;
		if (node->code == key->loop_code && node->loop == key->loop && !node->row_count)
			runs += node->runs;
	}
	return most > POLLS || (runs && finding->count / runs > POLLS);
}

const char *finding_op(const struct model *model, const struct finding *finding)
{
	const struct finding_key *key = &finding->key;

	return key->op_kind == OP_KIND_OPERATOR ? model->definitions.ops[key->op] :
	       key->op_kind == OP_KIND_NODE     ? model->definitions.node_types[key->op] :
						  NULL;
}
