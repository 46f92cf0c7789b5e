/* table.c: the table's rows, and its JSON and CSV. See table.h; text is table_text.c. */
#include "analyzer/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/memory.h"
#include "analyzer/table_model.h"

struct table *table_new(const struct column *columns, unsigned count)
{
	struct table *table = memory_zero(1, sizeof(*table));

	table->columns = columns;
	table->column_count = count;
	return table;
}

void table_free(struct table *table)
{
	for (size_t i = 0; i < (size_t)table->row_count * table->column_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}

void table_add_row(struct table *table)
{
	if (table->row_count == table->row_room) {
		table->row_room = table->row_room * 2 + 16;
		table->cells = memory_resize(table->cells,
					     (size_t)table->row_room * table->column_count,
					     sizeof(*table->cells));
	}
	struct cell *row = table->cells + (size_t)table->row_count++ * table->column_count;
	for (unsigned i = 0; i < table->column_count; i++)
		row[i] = (struct cell){ NULL, NAN };
}

unsigned table_rows(const struct table *table)
{
	return table->row_count;
}

static struct cell *newest(struct table *table, unsigned column)
{
	return table->cells + (size_t)(table->row_count - 1) * table->column_count + column;
}

void table_set_text(struct table *table, unsigned column, const char *text)
{
	struct cell *cell = newest(table, column);

	free(cell->text);
	cell->text = NULL;
	if (text) {
		size_t length = strlen(text);

		/* Replacement makes three bytes of one at most. */
		cell->text = memory_zero(3 * length + 1, 1);
		text_to_utf8(cell->text, text, length);
	}
}

void table_set_number(struct table *table, unsigned column, double number)
{
	newest(table, column)->number = number;
}

void table_set_blank(struct table *table, unsigned column)
{
	table_set_text(table, column, "");
}

static bool is_text(const struct column *column)
{
	return column->format <= COLUMN_BAR_TEXT;
}

bool table_cell_known(const struct column *column, const struct cell *cell)
{
	return is_text(column) ? cell->text != NULL : !isnan(cell->number);
}

/* Whole numbers are whole in JSON; times have a tenth of a ns, ratios six digits. */
static json_t *number_json(enum column_format format, double number)
{
	double scale = format == COLUMN_PERCENT || format == COLUMN_REAL ? 1e6 : 10;
	double rounded = round(number * scale) / scale;

	if (format == COLUMN_FLAG)
		return json_boolean(number != 0);
	if (rounded == floor(rounded) && fabs(rounded) < 9e15)
		return json_integer((json_int_t)rounded);
	return json_real(rounded);
}

static json_t *cell_json(const struct column *column, const struct cell *cell)
{
	if (!table_cell_known(column, cell))
		return json_null();
	return is_text(column) ? json_string(cell->text) :
				 number_json(column->format, cell->number);
}

/* The member of `object` called `name`, made where it is missing. */
static json_t *member(json_t *object, const char *name, size_t length)
{
	char key[64];

	snprintf(key, sizeof(key), "%.*s", (int)length, name);
	json_t *inner = json_object_get(object, key);
	if (!inner) {
		inner = json_object();
		json_object_set_new(object, key, inner);
	}
	return inner;
}

/* Objects whose members are all null are null themselves. */
static void collapse(json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, key, value)
	{
		const char *inner_key;
		json_t *inner;
		bool known = false;

		if (!json_is_object(value))
			continue;
		json_object_foreach(value, inner_key, inner) known |= !json_is_null(inner);
		if (!known)
			json_object_set_new(object, key, json_null());
	}
}

json_t *table_json(const struct table *table)
{
	json_t *rows = json_array();

	for (unsigned r = 0; r < table->row_count; r++) {
		const struct cell *row = table->cells + (size_t)r * table->column_count;
		json_t *object = json_object();

		for (unsigned c = 0; c < table->column_count; c++) {
			const char *key = table->columns[c].key;
			json_t *into = object;

			if (!key)
				continue;
			for (const char *dot; (dot = strchr(key, '.')); key = dot + 1)
				into = member(into, key, (size_t)(dot - key));
			json_object_set_new(into, key, cell_json(&table->columns[c], &row[c]));
		}
		collapse(object);
		json_array_append_new(rows, object);
	}
	return rows;
}

static void csv_text(const char *text, FILE *out)
{
	/* A spreadsheet would run what looks like a formula; no name of a file or an operator begins so. */
	bool formula = *text && strchr("=+-@\t\r", *text);

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	fputs(formula ? "\"'" : "\"", out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void table_print_csv(const struct table *table, FILE *out)
{
	const char *comma = "";

	for (unsigned c = 0; c < table->column_count; c++)
		if (table->columns[c].key) {
			fprintf(out, "%s%s", comma, table->columns[c].key);
			comma = ",";
		}
	fputs("\r\n", out);
	for (unsigned r = 0; r < table->row_count; r++) {
		const struct cell *row = table->cells + (size_t)r * table->column_count;

		comma = "";
		for (unsigned c = 0; c < table->column_count; c++) {
			const struct column *column = &table->columns[c];

			if (!column->key)
				continue;
			fputs(comma, out);
			comma = ",";
			if (!table_cell_known(column, &row[c]))
				continue;
			json_t *value = cell_json(column, &row[c]);
			if (json_is_string(value)) {
				csv_text(json_string_value(value), out);
			} else {
				char *text = json_dumps(value,
							JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

				fputs(text ? text : "", out);
				free(text);
			}
			json_decref(value);
		}
		fputs("\r\n", out);
	}
}

json_t *output_number(double number)
{
	return isnan(number) ? json_null() : number_json(COLUMN_TIME, number);
}

void output_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
	json_decref(json);
}
