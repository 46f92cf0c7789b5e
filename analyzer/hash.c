/* hash.c: see hash.h. */
#include "analyzer/hash.h"

#include <stdlib.h>

#include "analyzer/memory.h"

static void place(struct hash_table *table, struct hash_slot added)
{
	uint32_t at = added.hash;

	while (table->slots[at & table->mask].index)
		at++;
	table->slots[at & table->mask] = added;
}

void hash_add(struct hash_table *table, uint32_t hash, uint32_t index)
{
	if (!table->slots || table->count >= table->mask / 2) {
		struct hash_table old = *table;

		table->mask = old.slots ? old.mask * 2 + 1 : 63;
		table->slots = memory_zero((size_t)table->mask + 1, sizeof(*table->slots));
		for (uint32_t i = 0; old.slots && i <= old.mask; i++)
			if (old.slots[i].index)
				place(table, old.slots[i]);
		free(old.slots);
	}
	place(table, (struct hash_slot){ hash, index });
	table->count++;
}

void hash_free(struct hash_table *table)
{
	free(table->slots);
	*table = (struct hash_table){ 0 };
}
