/* table_model.h: what a table is made of, for table.c and table_text.c alone. */
#pragma once

#include "analyzer/table.h"
#include "analyzer/display.h"

struct cell {
	char *text;
	double number;
};

struct table {
	const struct column *columns;
	struct cell *cells; /* row by row */
	unsigned column_count, row_count, row_room;
};

bool table_cell_known(const struct column *column, const struct cell *cell);
