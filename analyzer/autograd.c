/* autograd.c: see autograd.h. */
#include "analyzer/autograd.h"

#include <stdlib.h>

#include "analyzer/memory.h"

static struct autograd_made *at(struct autograd_thread *thread, uint32_t place)
{
	return &thread->made[(thread->start + place) % AUTOGRAD_MADE_MAX];
}

void autograd_add(struct autograd_thread *thread, uint64_t sequence, uint64_t count, uint32_t row)
{
	struct autograd_made made = { sequence, count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
				      row };

	/* Out of order: the numbers of this thread began anew. */
	if (thread->count && sequence < at(thread, thread->count - 1)->sequence)
		thread->start = thread->count = thread->last = 0;
	if (thread->count == AUTOGRAD_MADE_MAX) {
		*at(thread, 0) = made;
		thread->start = (thread->start + 1) % AUTOGRAD_MADE_MAX;
		return;
	}
	memory_grow(thread->made, thread->count, thread->room);
	thread->made[thread->count++] = made;
}

uint32_t autograd_find(struct autograd_thread *thread, uint64_t sequence)
{
	uint32_t low = 0, high = thread->count;

	if (!thread->count)
		return 0;
	/* Backward goes through them in about the opposite order. */
	for (uint32_t step = 0; step < 3 && thread->last + 1 >= step; step++) {
		uint32_t place = thread->last + 1 - step;

		if (place < thread->count &&
		    sequence - at(thread, place)->sequence < at(thread, place)->count) {
			thread->last = place;
			return at(thread, place)->row;
		}
	}
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (at(thread, middle)->sequence <= sequence)
			low = middle;
		else
			high = middle;
	}
	if (sequence < at(thread, low)->sequence ||
	    sequence - at(thread, low)->sequence >= at(thread, low)->count)
		return 0;
	thread->last = low;
	return at(thread, low)->row;
}

void autograd_free(struct autograd_thread *thread)
{
	free(thread->made);
	*thread = (struct autograd_thread){ 0 };
}
