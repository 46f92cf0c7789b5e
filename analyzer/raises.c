/* raises.c: see raises.h. */
#include "analyzer/raises.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"

static uint32_t row_of(struct raises *raises, uint32_t code, uint32_t site, uint32_t loop)
{
	uint64_t mixed = hash_mix((uint64_t)code << 32 | site, loop);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), probe = hash, found;

	while ((found = hash_next(&raises->index, hash, &probe))) {
		const struct raise_row *row = &raises->rows[found];

		if (row->code == code && row->site == site && row->loop == loop)
			return found;
	}
	if (raises->count >= RAISES_MAX)
		return 0;
	raises->count += !raises->count;
	memory_grow(raises->rows, raises->count, raises->room);
	raises->rows[raises->count] = (struct raise_row){ code, site, loop, 0, 0 };
	hash_add(&raises->index, hash, raises->count);
	return raises->count++;
}

static bool is_next(const char *name)
{
	size_t length = strlen(name);

	return length >= 8 && !strcmp(name + length - 8, "__next__");
}

void raises_add(struct model *model, struct model_thread *thread, const struct span *frame,
		uint64_t now)
{
	struct raise_mark *mark = &thread->raise;
	const struct span *around = &thread->stack[thread->stack[thread->top].frame];
	uint32_t code = around->user ? around->code : around->user_code, row;

	/* Nothing ran since the one before: it is the same, on its way out. */
	if (mark->row && mark->spans == model->span_count) {
		model->raises.rows[mark->row].count--;
		model->raises.rows[mark->row].units -= mark->units;
	}
	mark->row = 0;
	if (!code || frame->thrown || frame->importing ||
	    is_next(model->definitions.codes[frame->code].name))
		return;
	row = row_of(&model->raises, code, around->user ? around->site : around->user_site,
		     thread->run_count ? thread->runs[thread->run_count - 1].node : LOOP_NONE);
	if (!row)
		return;
	*mark = (struct raise_mark){ row, model->span_count, now - frame->enter };
	model->raises.rows[row].count++;
	model->raises.rows[row].units += mark->units;
}

void raises_free(struct raises *raises)
{
	free(raises->rows);
	hash_free(&raises->index);
	*raises = (struct raises){ 0 };
}
