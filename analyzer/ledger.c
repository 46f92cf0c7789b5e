/* ledger.c: see ledger.h. */
#include "analyzer/ledger.h"

#include <stdlib.h>

#include "analyzer/calls.h"
#include "analyzer/memory.h"

const char *const ledger_line_names[LINE_COUNT] = {
#define LINE(name, title) #name,
#include "analyzer/ledger.def"
#undef LINE
};

const char *const ledger_line_titles[LINE_COUNT] = {
#define LINE(name, title) title,
#include "analyzer/ledger.def"
#undef LINE
};

void account_size(struct account *account, uint32_t slots)
{
	if (slots <= account->slots)
		return;
	/* Twice as many: classes come one at a time. */
	uint32_t units_room = account->slots, calls_room = account->slots;
	size_t wanted = slots + slots / 2;

	account->units = memory_grow_(account->units, &units_room, wanted, sizeof(*account->units));
	account->calls = memory_grow_(account->calls, &calls_room, wanted, sizeof(*account->calls));
	account->slots = units_room;
}

void account_copy(struct account *to, const struct account *from)
{
	account_size(to, from->slots);
	for (uint32_t i = 0; i < to->slots; i++) {
		to->units[i] = i < from->slots ? from->units[i] : 0;
		to->calls[i] = i < from->slots ? from->calls[i] : 0;
	}
}

void account_add_difference(struct account *to, const struct account *now,
			    const struct account *before)
{
	account_size(to, now->slots);
	for (uint32_t i = 0; i < now->slots; i++) {
		to->units[i] += now->units[i] - (i < before->slots ? before->units[i] : 0);
		to->calls[i] += now->calls[i] - (i < before->slots ? before->calls[i] : 0);
	}
}

void account_free(struct account *account)
{
	free(account->units);
	free(account->calls);
	*account = (struct account){ 0 };
}

/*
 * A long launch that was under way when an account began to follow its thread is taken out of one class
 * whole, though it came in in part. What a line lacks then is taken from the longest.
 */
static void settle_debts(struct ledger *ledger)
{
	unsigned longest = 0;

	for (unsigned line = 0; line < LINE_COUNT; line++)
		if (ledger->lines[line] > ledger->lines[longest])
			longest = line;
	for (unsigned line = 0; line < LINE_COUNT; line++)
		if (ledger->lines[line] < 0) {
			ledger->lines[longest] += ledger->lines[line];
			ledger->lines[line] = 0;
		}
}

struct ledger ledger_of(const struct account *account, struct calls *calls)
{
	struct ledger ledger = { 0 };

	for (uint32_t i = 0; i < account->slots; i++) {
		ledger.wall += (double)(int64_t)account->units[i];
		if (i < LINE_COUNT) {
			ledger.lines[i] += (double)(int64_t)account->units[i];
			continue;
		}
		uint32_t class = i - LINE_COUNT;
		double cost;

		if (class >= calls->class_count)
			break;
		enum ledger_line line = calls_line(calls, class);
		ledger.lines[LINE_wait] += calls_split(calls, class, account->calls[i],
						       (int64_t)account->units[i], &cost);
		ledger.lines[line] += cost;
		if (calls->classes[class].category == TRACE_CATEGORY_SYNC)
			line = LINE_wait;
		ledger.calls[line] += account->calls[i];
	}
	settle_debts(&ledger);
	return ledger;
}

struct ledger ledger_difference(const struct ledger *all, const struct ledger *before)
{
	struct ledger ledger = { .wall = all->wall - before->wall };

	for (unsigned line = 0; line < LINE_COUNT; line++) {
		double units = all->lines[line] - before->lines[line];

		/* The waiting of a part is split by the idle costs of all: rounding alone makes it negative. */
		ledger.lines[line] = units > 0 ? units : 0;
		ledger.calls[line] = all->calls[line] - before->calls[line];
	}
	return ledger;
}
