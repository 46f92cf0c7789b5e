/*
 * id_cache.h: a table from addresses or hashes to ids, read and filled by any thread without a lock.
 *
 * For torchhooks/. An entry is never changed once its value is set, except for the generation: ids that
 * another trace defines have to be defined again in a forked child's. Where two threads see a key for
 * the first time at once, both define it, with different ids; readers take both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/runtime.h"

struct id_entry {
	uint64_t key;   /* 0: free */
	uint64_t value; /* id | detail << 24 | generation << 48; 0: not set yet */
};

#define ID_CACHE_PROBES 32u
#define ID_BITS         24u
#define ID_DETAIL_BITS  24u

struct id_cache {
	unsigned bits; /* log2 of the number of entries */
	struct id_entry *entries;
	uint32_t *last_id;
};

/* `detail`: up to 24 bits that the user of the cache keeps with an id. */
struct id_found {
	uint32_t id; /* 0: not in the cache */
	uint32_t detail;
	bool defined; /* in this trace */
};

static inline uint16_t id_generation(void)
{
	return (uint16_t)tare_generation;
}

static inline __attribute__((always_inline)) struct id_found
id_cache_find(const struct id_cache *cache, uint64_t key)
{
	uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> (64 - cache->bits));

	for (uint32_t i = 0; i < ID_CACHE_PROBES; i++) {
		const struct id_entry *entry = &cache->entries[at];
		uint64_t found = __atomic_load_n(&entry->key, __ATOMIC_RELAXED);

		if (tare_likely(found == key)) {
			uint64_t value = __atomic_load_n(&entry->value, __ATOMIC_RELAXED);

			return (struct id_found){
				.id = (uint32_t)value & ((1u << ID_BITS) - 1),
				.detail = (uint32_t)(value >> ID_BITS) &
					  ((1u << ID_DETAIL_BITS) - 1),
				.defined = (uint16_t)(value >> 48) == id_generation(),
			};
		}
		if (!found)
			break;
		at = (at + 1) & ((1u << cache->bits) - 1);
	}
	return (struct id_found){ .id = 0 };
}

/*
 * Keeps what was found out about `key`, where there is room. Called after the record that defines the
 * id was written.
 */
void id_cache_keep(const struct id_cache *cache, uint64_t key, uint32_t id, uint32_t detail);

/* The id to define for a key that is not defined in this trace: its own, or a new one. */
uint32_t id_cache_id(const struct id_cache *cache, struct id_found found);

/* Ids of texts. */
uint64_t text_key(const char *text, size_t bytes);
