/* ranges.c: how often the program's own ranges (record_function) ran, and how long. See ranges.h. */
#include "analyzer/ranges.h"

#include "analyzer/memory.h"

#define RANGES_MAX (1u << 20) /* open at once in a thread; further ones are not counted */

void range_begin(struct model *model, struct model_thread *thread, uint64_t name, uint64_t now)
{
	if (thread->range_count >= RANGES_MAX)
		return;
	memory_grow(thread->ranges, thread->range_count, thread->range_room);
	thread->ranges[thread->range_count++] =
		(struct open_range){ id_map_get(&model->definitions.string_ids, name), now };
}

void range_end(struct model *model, struct model_thread *thread, uint64_t now)
{
	if (!thread->range_count)
		return;
	const struct open_range *range = &thread->ranges[--thread->range_count];
	model->ranges[range->name].count++;
	model->ranges[range->name].sum += now - range->start;
}
