/*
 * memory.h: allocation for the analyzer: what cannot be had ends the command with a message.
 *
 * For all of analyzer/. An arena serves what lives as long as the model of a trace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Zeroed. Never NULL. */
void *memory_zero(size_t count, size_t size);
void *memory_resize(void *old, size_t count, size_t size);

/*
 * Makes room for one more element in a growing array: `array`, `count` used, `capacity` there. New
 * elements are zeroed.
 */
#define memory_grow(array, count, capacity)                                                        \
	do {                                                                                       \
		if ((count) >= (capacity))                                                         \
			(array) = memory_grow_(array, &(capacity), (size_t)(count) + 1,            \
					       sizeof(*(array)));                                  \
	} while (0)
void *memory_grow_(void *array, uint32_t *capacity, size_t wanted, size_t size);

struct arena {
	struct arena_chunk *chunks;
	size_t used, room;
};

/* Zeroed, aligned to 8 bytes. */
void *arena_get(struct arena *arena, size_t bytes);
/* Terminated; always valid UTF-8: what is not becomes U+FFFD. */
const char *arena_text(struct arena *arena, const char *data, size_t length);
void arena_free(struct arena *arena);
