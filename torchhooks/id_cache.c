/*
 * id_cache.c: filling the tables of id_cache.h.
 */
#include "torchhooks/id_cache.h"

void id_cache_keep(const struct id_cache *cache, uint64_t key, uint32_t id, uint32_t detail)
{
	uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> (64 - cache->bits));
	uint64_t value = (uint64_t)id | (uint64_t)detail << ID_BITS |
			 (uint64_t)id_generation() << 48;

	for (uint32_t i = 0; i < ID_CACHE_PROBES; i++) {
		struct id_entry *entry = &cache->entries[at];
		uint64_t found = 0;

		if (__atomic_compare_exchange_n(&entry->key, &found, key, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    found == key) {
			__atomic_store_n(&entry->value, value, __ATOMIC_RELAXED);
			return;
		}
		at = (at + 1) & ((1u << cache->bits) - 1);
	}
}

uint32_t id_cache_id(const struct id_cache *cache, struct id_found found)
{
	return found.id ? found.id : tare_next_id(cache->last_id);
}

/* FNV-1a, 64 bits, finished so that its high bits serve as well. Never 0. */
uint64_t text_key(const char *text, size_t bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u;
	hash ^= hash >> 32;
	return hash ? hash : 1;
}
