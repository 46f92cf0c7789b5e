/*
 * floors.h: of an operator on the CPU, whose time grows with its data, what is left where there is little.
 *
 * For opview.c. Sizes are not in a trace: the least of all places where it was called stands for it.
 */
#pragma once

#include "analyzer/model.h"

#define FLOOR_CALLS_MIN 10 /* of a place: fewer say nothing of its lowest decile */

struct op_floor {
	uint64_t calls; /* of those places */
	uint32_t places;
	double least, most; /* of framework: the lowest decile, the highest, clock units */
	bool known;         /* they lie apart: data of several sizes were among them */
};

/* By operator, those that are kept for a backward pass apart. Free it. */
struct op_floor *floors_make(const struct model *model);

/* Of a row; NULL: it is no operator on the CPU. */
const struct op_floor *floors_of(const struct op_floor *floors, const struct op_row *row);
