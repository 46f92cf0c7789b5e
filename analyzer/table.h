/*
 * table.h: a table of rows, printed as text that fits the terminal, as JSON or as CSV.
 *
 * For cmd_*.c and the views. One description of a column serves all three: what is measured is put in
 * once. What was not put in is unknown: "–" in text, null in JSON, empty in CSV.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum column_format {
	COLUMN_TEXT,     /* shortened at its end where there is no room */
	COLUMN_PATH,     /* at its start */
	COLUMN_BAR_TEXT, /* not shortened */
	COLUMN_ID,       /* a whole number, as it is */
	COLUMN_COUNT,
	COLUMN_TIME,    /* ns in, with its unit in text */
	COLUMN_US,      /* ns in, µs in text: the table's title names the unit */
	COLUMN_PERCENT, /* a ratio in */
	COLUMN_BYTES,
	COLUMN_REAL, /* two decimals in text */
	COLUMN_FLAG, /* not 0: true */
};

struct column {
	const char *key;   /* in JSON and CSV; "a.b" is member b of object a; NULL: in text alone */
	const char *title; /* in text; NULL: in JSON and CSV alone */
	enum column_format format;
	unsigned drop; /* text: where the width is short, the highest are left out first; 0: never */
	bool keep_empty; /* text: also where no row has a value */
};

/*
 * A table's columns are written once, as a list that takes COLUMN(ID, key, title, format, drop), in the order
 * of JSON and text. The list of these are the columns' numbers COLUMN_ID, and what describes them.
 */
#define COLUMN_NUMBER(id, key, title, format, drop)      COLUMN_##id,
#define COLUMN_DESCRIPTION(id, key, title, format, drop) { key, title, format, drop, false },

struct table;

struct table *table_new(const struct column *columns, unsigned count);
void table_free(struct table *table);
void table_add_row(struct table *table);
unsigned table_rows(const struct table *table);

/* Into the newest row. NULL and NAN: unknown. */
void table_set_text(struct table *table, unsigned column, const char *text);
void table_set_number(struct table *table, unsigned column, double number);
/* Nothing is to be said here: empty in text, not "unknown". Of a number's column. */
void table_set_blank(struct table *table, unsigned column);

/* An array of objects. An object of which nothing is known is null. */
json_t *table_json(const struct table *table);
void table_print_csv(const struct table *table, FILE *out);
/* `heading` stands in the place of the first column's title. */
void table_print_text(const struct table *table, const char *heading, FILE *out);

/* How text is printed on stdout: columns of the terminal (or 120), and whether colour is wanted. */
unsigned output_width(void);
bool output_colour(void);

enum output_style { STYLE_PLAIN, STYLE_HEADING, STYLE_FAINT, STYLE_WARNING };
/* The escape sequence that begins a style, or "" where there is no colour. */
const char *output_style(enum output_style style);

/*
 * Prints the words of `text`, which is taken apart, on lines that fit: a space before each, the first at
 * column `at`, those of further lines at `indent`.
 */
void output_wrapped(char *text, unsigned at, unsigned indent);

/* A number as in the tables' JSON, ns to a tenth; null for NAN. */
json_t *output_number(double number);

/* Prints to stdout and frees. */
void output_json(json_t *json);
