/*
 * table_display.c: a table as text: columns as wide as their contents, fitted to the terminal.
 *
 * Where the width is short, first the columns that may be dropped go, then texts are shortened.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analyzer/memory.h"
#include "analyzer/table_model.h"

#define GAP              2
#define PIPE_WIDTH       120
#define TEXT_WIDTH_LEAST 22 /* a column of text is not made narrower than this before columns go */
#define ZEROS_DROP       1000
#define UNKNOWN          "–"

unsigned output_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	long width = columns ? strtol(columns, NULL, 10) : 0;

	if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		width = size.ws_col;
	if (width <= 0)
		width = PIPE_WIDTH;
	return width < 60 ? 60 : width > 400 ? 400 : (unsigned)width;
}

bool output_colour(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(term && !strcmp(term, "dumb"));
}

const char *output_style(enum output_style style)
{
	static const char *const sequences[] = { "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m" };

	return output_colour() ? sequences[style] : "";
}

static bool is_text(const struct column *column)
{
	return column->format <= COLUMN_BAR_TEXT;
}

/* What a cell says; free it. */
static char *cell_text(const struct column *column, const struct cell *cell)
{
	char number[TEXT_NUMBER_ROOM];

	if (!table_cell_known(column, cell))
		return strdup(cell->text ? cell->text : UNKNOWN);
	if (!is_text(column) && column->format != COLUMN_FLAG && cell->number == 0)
		return strdup("0");
	switch (column->format) {
	case COLUMN_TEXT:
	case COLUMN_BAR_TEXT:
	case COLUMN_PATH: return text_escape(cell->text);
	case COLUMN_ID: snprintf(number, sizeof(number), "%.0f", cell->number); break;
	case COLUMN_COUNT: text_count(number, cell->number); break;
	case COLUMN_TIME: text_ns(number, cell->number); break;
	case COLUMN_US: text_us(number, cell->number); break;
	case COLUMN_PERCENT: text_percent(number, cell->number); break;
	case COLUMN_BYTES: text_bytes(number, cell->number); break;
	case COLUMN_REAL: snprintf(number, sizeof(number), "%.2f", cell->number); break;
	case COLUMN_FLAG: return strdup(cell->number != 0 ? "yes" : "no");
	}
	return strdup(number);
}

struct layout {
	const char **titles;
	char **texts;     /* row by row */
	unsigned *widths; /* 0: the column is left out */
	unsigned *drops; /* as of the columns; those that hold nothing but zeros go before others */
};

static unsigned total_width(const struct table *table, const struct layout *layout)
{
	unsigned total = 0, shown = 0;

	for (unsigned c = 0; c < table->column_count; c++) {
		total += layout->widths[c];
		shown += layout->widths[c] > 0;
	}
	return total + (shown ? (shown - 1) * GAP : 0);
}

/* What the columns of text could give before they become too narrow to read. */
static unsigned spare_width(const struct table *table, const struct layout *layout)
{
	unsigned spare = 0;

	for (unsigned c = 0; c < table->column_count; c++)
		if (table->columns[c].format < COLUMN_BAR_TEXT &&
		    layout->widths[c] > TEXT_WIDTH_LEAST)
			spare += layout->widths[c] - TEXT_WIDTH_LEAST;
	return spare;
}

/* Leaves out the least important column that may go. False: none may. */
static bool drop_one(const struct table *table, struct layout *layout)
{
	unsigned worst = table->column_count;

	for (unsigned c = 0; c < table->column_count; c++)
		if (layout->widths[c] && layout->drops[c] &&
		    (worst == table->column_count || layout->drops[c] > layout->drops[worst]))
			worst = c;
	if (worst == table->column_count)
		return false;
	layout->widths[worst] = 0;
	return true;
}

/* Makes the widest text narrower by one. False: all are as narrow as can be. */
static bool narrow_one(const struct table *table, struct layout *layout)
{
	unsigned widest = table->column_count;

	for (unsigned c = 0; c < table->column_count; c++)
		if (is_text(&table->columns[c]) && table->columns[c].format != COLUMN_BAR_TEXT &&
		    (widest == table->column_count || layout->widths[c] > layout->widths[widest]))
			widest = c;
	if (widest == table->column_count || layout->widths[widest] <= 4)
		return false;
	layout->widths[widest]--;
	return true;
}

static void fit(const struct table *table, struct layout *layout, unsigned width)
{
	/* First what makes no text too narrow to read; then whatever helps. */
	while (total_width(table, layout) > width + spare_width(table, layout))
		if (!drop_one(table, layout))
			break;
	while (total_width(table, layout) > width)
		if (!narrow_one(table, layout) && !drop_one(table, layout))
			break;
}

static void measure(const struct table *table, struct layout *layout)
{
	for (unsigned c = 0; c < table->column_count; c++) {
		const struct column *column = &table->columns[c];
		bool known = column->keep_empty, zeros = true;
		unsigned width = layout->titles[c] ? text_width(layout->titles[c]) : 0;

		for (unsigned r = 0; r < table->row_count; r++) {
			size_t at = (size_t)r * table->column_count + c;

			/* A column in which nothing is to be said says nothing. */
			known |= table_cell_known(column, &table->cells[at]) &&
				 (!is_text(column) || *table->cells[at].text);
			zeros &= !is_text(column) && !(fabs(table->cells[at].number) > 0);
			layout->texts[at] = cell_text(column, &table->cells[at]);
			unsigned cell_width = text_width(layout->texts[at]);
			if (cell_width > width)
				width = cell_width;
		}
		layout->drops[c] = column->drop + (column->drop && zeros ? ZEROS_DROP : 0);
		layout->widths[c] = column->title && (known || c == 0) ? width : 0;
	}
}

static void print_cell(const struct column *column, const char *text, unsigned width, bool last,
		       FILE *out)
{
	char *shown = text_shorten(text, width,
				   column->format == COLUMN_PATH ? TEXT_CUT_START : TEXT_CUT_END);
	unsigned pad = width - text_width(shown);

	if (is_text(column))
		fprintf(out, "%s%*s", shown, last ? 0 : (int)pad, "");
	else
		fprintf(out, "%*s%s", (int)pad, "", shown);
	free(shown);
}

static void print_line(const struct table *table, const struct layout *layout,
		       const char *const *texts, FILE *out)
{
	unsigned last = 0;

	/* Nothing is printed behind the last text: no spaces at a line's end. */
	for (unsigned c = 0; c < table->column_count; c++)
		if (layout->widths[c] && texts[c] && *texts[c])
			last = c;
	for (unsigned c = 0; c <= last; c++) {
		if (!layout->widths[c])
			continue;
		print_cell(&table->columns[c], texts[c] ? texts[c] : "", layout->widths[c],
			   c == last, out);
		if (c < last)
			fprintf(out, "%*s", GAP, "");
	}
}

void table_print_text(const struct table *table, const char *heading, FILE *out)
{
	size_t cells = (size_t)table->row_count * table->column_count;
	struct layout layout = {
		.titles = memory_zero(table->column_count, sizeof(char *)),
		.texts = memory_zero(cells, sizeof(char *)),
		.widths = memory_zero(table->column_count, sizeof(unsigned)),
		.drops = memory_zero(table->column_count, sizeof(unsigned)),
	};

	for (unsigned c = 0; c < table->column_count; c++)
		layout.titles[c] = c == 0 && heading ? heading : table->columns[c].title;
	measure(table, &layout);
	fit(table, &layout, output_width());
	fputs(output_style(STYLE_HEADING), out);
	print_line(table, &layout, layout.titles, out);
	fprintf(out, "%s\n", output_style(STYLE_PLAIN));
	for (unsigned r = 0; r < table->row_count; r++) {
		print_line(table, &layout,
			   (const char *const *)layout.texts + (size_t)r * table->column_count,
			   out);
		fputc('\n', out);
	}
	for (size_t i = 0; i < cells; i++)
		free(layout.texts[i]);
	free(layout.texts);
	free(layout.titles);
	free(layout.widths);
	free(layout.drops);
}

void output_wrapped(char *text, unsigned at, unsigned indent)
{
	char *word;

	while ((word = strsep(&text, " "))) {
		if (at > indent && at + 1 + text_width(word) > output_width()) {
			printf("\n%*s", (int)indent - 1, "");
			at = indent - 1;
		}
		printf(" %s", word);
		at += 1 + text_width(word);
	}
}
