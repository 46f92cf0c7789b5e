/* ledger.c: see ledger.h. */
#include "analyzer/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/calls.h"
#include "analyzer/memory.h"
#include "analyzer/weight.h"

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
	uint32_t units_room = account->slots, calls_room = account->slots,
		 weight_room = account->slots;
	size_t wanted = slots + slots / 2;

	account->units = memory_grow_(account->units, &units_room, wanted, sizeof(*account->units));
	account->calls = memory_grow_(account->calls, &calls_room, wanted, sizeof(*account->calls));
	account->weight =
		memory_grow_(account->weight, &weight_room, wanted, sizeof(*account->weight));
	account->slots = units_room;
}

void account_copy(struct account *to, const struct account *from)
{
	account_size(to, from->slots);
	for (uint32_t i = 0; i < to->slots; i++) {
		to->units[i] = i < from->slots ? from->units[i] : 0;
		to->calls[i] = i < from->slots ? from->calls[i] : 0;
		to->weight[i] = i < from->slots ? from->weight[i] : 0;
	}
	memcpy(to->line_calls, from->line_calls, sizeof(to->line_calls));
}

void account_add_difference(struct account *to, const struct account *now,
			    const struct account *before)
{
	account_size(to, now->slots);
	for (uint32_t i = 0; i < now->slots; i++) {
		to->units[i] += now->units[i] - (i < before->slots ? before->units[i] : 0);
		to->calls[i] += now->calls[i] - (i < before->slots ? before->calls[i] : 0);
		to->weight[i] += now->weight[i] - (i < before->slots ? before->weight[i] : 0);
	}
	for (unsigned line = 0; line < LINE_COUNT; line++)
		to->line_calls[line] += now->line_calls[line] - before->line_calls[line];
}

void account_free(struct account *account)
{
	free(account->units);
	free(account->calls);
	free(account->weight);
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

/* What tare took of a slot: no more than is in it. */
static double slot_weight(const struct account *account, uint32_t slot)
{
	double units = (double)(int64_t)account->units[slot];
	double weight = (double)(int64_t)account->weight[slot] / WEIGHT_SCALE;

	return slot == LINE_tare || !(units > 0) || weight < 0 ? 0 :
	       weight < units                                  ? weight :
								 units;
}

double account_tare(const struct account *account)
{
	double all = LINE_tare < account->slots ? (double)account->units[LINE_tare] : 0;

	for (uint32_t i = 0; i < account->slots; i++)
		all += slot_weight(account, i);
	return all;
}

struct ledger ledger_of(const struct account *account, struct calls *calls)
{
	struct ledger ledger = { 0 };

	for (uint32_t i = 0; i < account->slots; i++) {
		double units = (double)(int64_t)account->units[i];
		double weight = slot_weight(account, i);

		ledger.wall += units;
		ledger.weight += weight;
		ledger.clamped += (double)(int64_t)account->weight[i] / WEIGHT_SCALE - weight;
		units -= weight;
		if (i < LINE_COUNT) {
			ledger.lines[i] += units;
			continue;
		}
		uint32_t class = i - LINE_COUNT;
		double cost;

		if (class >= calls->class_count)
			break;
		enum ledger_line line = calls_line(calls, class);
		ledger.lines[LINE_wait] +=
			calls_split(calls, class, account->calls[i], units, &cost);
		ledger.lines[line] += cost;
	}
	memcpy(ledger.calls, account->line_calls, sizeof(ledger.calls));
	ledger.lines[LINE_tare] += ledger.weight;
	settle_debts(&ledger);
	return ledger;
}

struct ledger ledger_difference(const struct ledger *all, const struct ledger *before)
{
	struct ledger ledger = {
		.wall = all->wall - before->wall,
		.weight = all->weight - before->weight,
		.clamped = all->clamped - before->clamped,
	};

	for (unsigned line = 0; line < LINE_COUNT; line++) {
		double units = all->lines[line] - before->lines[line];

		/* The waiting of a part is split by the idle costs of all: rounding alone makes it negative. */
		ledger.lines[line] = units > 0 ? units : 0;
		ledger.calls[line] = all->calls[line] - before->calls[line];
	}
	return ledger;
}
