/* memory.c: see memory.h. */
#include "analyzer/memory.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/message.h"
#include "analyzer/display.h"

#define CHUNK_BYTES (256u << 10)

struct arena_chunk {
	struct arena_chunk *next;
	uint64_t data[];
};

static void *check(void *memory)
{
	if (!memory)
		exit(complain("out of memory: give it more, or choose one process with --pid"));
	return memory;
}

void *memory_zero(size_t count, size_t size)
{
	return check(calloc(count ? count : 1, size));
}

void *memory_resize(void *old, size_t count, size_t size)
{
	return check(reallocarray(old, count ? count : 1, size));
}

void *memory_grow_(void *array, uint32_t *capacity, size_t wanted, size_t size)
{
	size_t room = *capacity + *capacity / 2 + 16;

	if (room < wanted)
		room = wanted;
	if (room > UINT32_MAX)
		check(NULL);
	array = memory_resize(array, room, size);
	memset((char *)array + *capacity * size, 0, (room - *capacity) * size);
	*capacity = (uint32_t)room;
	return array;
}

void *arena_get(struct arena *arena, size_t bytes)
{
	bytes = (bytes + 7) & ~(size_t)7;
	if (!arena->chunks || arena->room - arena->used < bytes) {
		size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
		struct arena_chunk *chunk = memory_zero(1, sizeof(*chunk) + room);

		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->used = 0;
		arena->room = room;
	}
	void *memory = (char *)arena->chunks->data + arena->used;
	arena->used += bytes;
	return memory;
}

const char *arena_text(struct arena *arena, const char *data, size_t length)
{
	size_t bytes = text_to_utf8(NULL, data, length);
	char *text = arena_get(arena, bytes + 1);

	text_to_utf8(text, data, length);
	return text;
}

void arena_free(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	*arena = (struct arena){ 0 };
}
