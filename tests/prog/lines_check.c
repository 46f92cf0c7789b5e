/* Compares analyzer/lines.c with what lines_tables.py wrote to standard input. */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/lines.h"

int main(void)
{
	struct {
		uint32_t python, first_line, table_bytes, units;
	} head;
	unsigned long checked = 0, wrong = 0;

	while (fread(&head, sizeof(head), 1, stdin) == 1) {
		char *table = malloc(head.table_bytes + 1);
		int32_t *expected = malloc((head.units + 1) * sizeof(*expected));

		if (fread(table, 1, head.table_bytes, stdin) != head.table_bytes ||
		    fread(expected, sizeof(*expected), head.units, stdin) != head.units)
			return 2;
		for (uint32_t unit = 0; unit < head.units; unit++) {
			int32_t line = lines_lookup(head.python, head.first_line,
						    (struct trace_str){ table, head.table_bytes },
						    unit);

			checked++;
			if (line != expected[unit] && wrong++ < 10)
				printf("code at line %u, unit %u: %d, expected %d\n",
				       head.first_line, unit, line, expected[unit]);
		}
		free(table);
		free(expected);
	}
	printf("%lu checked, %lu wrong\n", checked, wrong);
	return wrong != 0;
}
