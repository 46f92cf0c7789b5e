/*
 * ledger_view.h: ledgers for people and programs. For cmd_*.c.
 */
#pragma once

#include <jansson.h>

#include "analyzer/model.h"

/* wall_ns, and a member for each line: python_user_ns, ... null where the trace cannot tell. */
/* Of one of so many passes: what was taken out, how sure that is, what should have been but was not there. */
json_t *own_weight_json(const struct model *model, const struct ledger *ledger, double passes);

/* One line about it, of one of so many passes; none where it is not known. */
void own_weight_print(const struct model *model, const struct ledger *ledger, double passes);

json_t *ledger_json(const struct model *model, const struct ledger *ledger);

/*
 * The parts of a run: until the program's own code first called an operator, and imports later on; then; and after its outermost
 * frame ended. What is not known, or too short to look at, belongs to `program`; its wall is then 0.
 */
struct ledger_parts {
	struct ledger all, startup, program, exit;
	double late_imports; /* clock units, of `startup` */
};
struct ledger_parts ledger_parts_of(struct model *model);

void ledger_print(struct model *model);

/* Of one pass of a loop, where `ledger` is of so many. */
void ledger_print_pass(const struct model *model, const struct ledger *ledger, double passes);
