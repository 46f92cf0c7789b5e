/* floors.c: see floors.h. */
#include "analyzer/floors.h"

#include "analyzer/memory.h"

#define APART 2 /* times the lowest decile: calls on equal data hardly vary that much */

/* What it calls of CUDA and its libraries costs the same with any data, its own part too. */
static bool is_on_cpu(const struct op_row *row)
{
	return row->key.kind == OP_KIND_OPERATOR && !row->cells && !row->launches;
}

static uint32_t place_of(const struct op_row *row)
{
	return 2 * row->key.op + (2 * row->made > row->calls);
}

struct op_floor *floors_make(const struct model *model)
{
	const struct op_table *table = &model->op_table;
	struct op_floor *floors = memory_zero(2 * model->definitions.op_count + 2, sizeof(*floors));

	for (uint32_t i = 1; i < table->count; i++) {
		const struct op_row *row = &table->rows[i];

		if (!is_on_cpu(row) || row->framework_known < FLOOR_CALLS_MIN)
			continue;
		const struct histogram *framework = &row->distribution->parts[OP_framework];
		/* Those that took nothing measurable are not in it. */
		if (framework->count * 10 < row->framework_known * 9)
			continue;
		struct op_floor *floor = &floors[place_of(row)];
		double least = histogram_percentile(framework, 0.1);
		double most = histogram_percentile(framework, 0.9);

		if (!floor->places++ || least < floor->least)
			floor->least = least;
		floor->most = most > floor->most ? most : floor->most;
		floor->calls += row->framework_known;
		floor->known = floor->most >= APART * floor->least;
	}
	return floors;
}

const struct op_floor *floors_of(const struct op_floor *floors, const struct op_row *row)
{
	return is_on_cpu(row) ? &floors[place_of(row)] : NULL;
}
