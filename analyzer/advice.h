/*
 * advice.h: what the trace shows that common advice is about, and what it costs a pass of the main loop.
 *
 * For cmd_report.c. What shows in fewer than half of the passes, or would save next to nothing, is not told.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "analyzer/syncs.h"

enum advice_rule {
#define ADVICE(NAME, name, text) ADVICE_##NAME,
#include "analyzer/advice.def"
#undef ADVICE
	ADVICE_RULES,
};

/* One place that a piece of advice is about. Times are ns a pass. */
struct advice_place {
	uint32_t code, line;
	double per_pass, cost_ns, saves_ns;
};

struct advice {
	struct advice_place *places; /* the most expensive first */
	uint32_t count, room;
	double per_pass, cost_ns, saves_ns; /* of all; saves_ns: at most */
	bool published; /* saves_ns is by what `tare bench` has as published; else all was measured */
};

struct advice_list {
	const struct model *model;
	struct advice rules[ADVICE_RULES];
};

void advice_make(struct advice_list *list, struct model *model, const struct syncs *syncs);
void advice_free(struct advice_list *list);

json_t *advice_json(const struct advice_list *list);
/* Text; nothing where there is no advice. */
void advice_print(const struct advice_list *list);
