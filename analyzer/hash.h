/*
 * hash.h: a hash table of indices, for arrays whose elements are looked up by what they hold.
 *
 * For analyzer/'s model. Index 0 stands for "none", so arrays that use it begin with an unused element.
 *
 *	uint32_t probe = hash, i;
 *	while ((i = hash_next(&table, hash, &probe)))
 *		if (element i is the one)
 *			return i;
 *	hash_add(&table, hash, new index);
 */
#pragma once

#include <stdint.h>

struct hash_slot {
	uint32_t hash, index;
};

struct hash_table {
	struct hash_slot *slots;
	uint32_t mask, count;
};

static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The next element of that hash; 0: no more. */
static inline uint32_t hash_next(const struct hash_table *table, uint32_t hash, uint32_t *probe)
{
	if (!table->slots)
		return 0;
	for (;;) {
		const struct hash_slot *slot = &table->slots[(*probe)++ & table->mask];

		if (!slot->index || slot->hash == hash)
			return slot->index;
	}
}

void hash_add(struct hash_table *table, uint32_t hash, uint32_t index);
void hash_free(struct hash_table *table);
