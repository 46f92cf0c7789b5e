/* hints.c: what to do about a finding, from hints.def. */
#include <string.h>

#include "analyzer/findings.h"
#include "analyzer/model.h"

enum when { ANY, SEVERAL };

static const struct {
	enum finding_kind kind;
	const char *op, *function;
	enum when when;
	const char *text;
} hints[] = {
#define HINT(kind, op, function, when, text) { FINDING_##kind, op, function, when, text },
#include "analyzer/hints.def"
#undef HINT
};

static bool is_sync(uint32_t kind)
{
	return kind == FINDING_STREAM_SYNC || kind == FINDING_EVENT_SYNC ||
	       kind == FINDING_DEVICE_SYNC;
}

/* In all runs of its nearest loop: passes with such a wait, and passes. */
static void passes_in(const struct model *model, const struct finding *finding, uint64_t *with,
		      uint64_t *all)
{
	*with = *all = 0;
	for (uint32_t i = 0; i < finding->loop_count; i++) {
		const struct loop_node *node = &model->loops.nodes[finding->loops[i].node];

		if (node->code != finding->key.loop_code || node->loop != finding->key.loop)
			continue;
		*with += finding->loops[i].passes;
		*all += node->passes_known ? node->passes : UINT32_MAX;
	}
}

/* Both are in more passes than there are without either: some pass has both. */
static bool share_a_pass(const struct model *model, const struct finding *a,
			 const struct finding *b)
{
	uint64_t with_a, with_b, all, all_b;

	passes_in(model, a, &with_a, &all);
	passes_in(model, b, &with_b, &all_b);
	return all == all_b && 2 * with_a >= all && with_a + with_b > all;
}

static bool is_one_of_several(const struct model *model, const struct finding *finding)
{
	const struct finding_key *key = &finding->key;

	for (uint32_t i = 1; key->loop && i < model->findings.count; i++) {
		const struct finding_key *other = &model->findings.rows[i].key;

		if (other->kind == key->kind && other->thread == key->thread &&
		    other->loop_code == key->loop_code && other->loop == key->loop &&
		    !other->explicit && !other->design &&
		    (other->user_code != key->user_code || other->user_site != key->user_site) &&
		    share_a_pass(model, finding, &model->findings.rows[i]))
			return true;
	}
	return false;
}

const char *finding_hint(const struct model *model, const struct finding *finding)
{
	const char *op = finding_op(model, finding);
	const char *function = model->definitions.codes[finding->key.code].name;

	/* What a library waits for in its native code is not known. */
	if (is_sync(finding->key.kind) && !finding->key.explicit)
		return NULL;
	for (unsigned i = 0; i < sizeof(hints) / sizeof(*hints); i++)
		if (hints[i].kind == (enum finding_kind)finding->key.kind &&
		    !strncmp(op ? op : "", hints[i].op, strlen(hints[i].op)) &&
		    strstr(function, hints[i].function) &&
		    (hints[i].when == ANY || is_one_of_several(model, finding)))
			return hints[i].text;
	return NULL;
}
