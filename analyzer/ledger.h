/*
 * ledger.h: where a thread's time went: each moment in exactly one line.
 *
 * For analyzer/'s model. An account collects clock units by slot while the trace is read: a slot for
 * each line, and one for each class of calls, whose waiting is told apart at the end.
 */
#pragma once

#include <stdint.h>

struct calls;

enum ledger_line {
#define LINE(name, title) LINE_##name,
#include "analyzer/ledger.def"
#undef LINE
	LINE_COUNT,
};

extern const char *const ledger_line_names[LINE_COUNT], *const ledger_line_titles[LINE_COUNT];

/* Of a class: LINE_COUNT + class. */
struct account {
	uint64_t *units;
	uint64_t *calls;  /* by slot: how many ended */
	uint64_t *weight; /* by slot: what of `units` tare itself took, see weight.h */
	uint32_t slots;
	/* Of the process alone: how many ended on any thread, by line; those that wait by definition: wait. */
	uint64_t line_calls[LINE_COUNT];
};

/* Makes room for `slots`. */
void account_size(struct account *account, uint32_t slots);
void account_copy(struct account *to, const struct account *from);
/* Adds what `now` has beyond `before`. */
void account_add_difference(struct account *to, const struct account *now,
			    const struct account *before);
void account_free(struct account *account);

struct ledger {
	double lines[LINE_COUNT];   /* clock units */
	double wall;                /* their sum */
	uint64_t calls[LINE_COUNT]; /* as of the account */
	double weight;              /* of tare's line: what was taken out of the others */
	double clamped;             /* what should have been taken out too, but was not there */
};

/* What `all` has beyond `before`: both of one account, at different times. */
struct ledger ledger_difference(const struct ledger *all, const struct ledger *before);

/* What tare itself took, in clock units. */
double account_tare(const struct account *account);

/* At the end of the trace. */
struct ledger ledger_of(const struct account *account, struct calls *calls);
