/* test_analyzer_tables.c: histograms, text for terminals, tables as text, JSON and CSV. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/display.h"
#include "analyzer/histogram.h"
#include "analyzer/memory.h"
#include "analyzer/table.h"

static void test_histogram(void **state)
{
	struct histogram histogram = { 0 }, merged = { 0 };
	double sum = 0;

	(void)state;
	assert_true(isnan(histogram_percentile(&histogram, 0.5)));
	/* All sizes: a percentile is within 2 % of the true one. */
	for (uint64_t scale = 1; scale < 1000000000000; scale *= 10) {
		for (uint64_t i = 1; i <= 1000; i++)
			histogram_add(&histogram, i * scale);
		for (double rank = 0.05; rank < 1; rank += 0.05) {
			double expected = rank * 1000 * (double)scale;

			assert_true(fabs(histogram_percentile(&histogram, rank) - expected) <=
				    0.02 * expected + (double)scale);
		}
		assert_true(histogram_percentile(&histogram, 0) >= (double)scale);
		assert_true(histogram_percentile(&histogram, 1) == 1000 * (double)scale);
		histogram_free(&histogram);
	}
	/* Equal values are exact. */
	histogram_add_many(&histogram, 123456789, 77);
	assert_true(histogram_percentile(&histogram, 0.1) == 123456789);
	assert_true(histogram_percentile(&histogram, 0.9) == 123456789);
	/* A cap; the largest number. */
	histogram_add(&histogram, UINT64_MAX);
	for (unsigned i = 0; i < 77; i++)
		sum += 123456789;
	assert_true(fabs(histogram_capped_sum(&histogram, sum + 1.8e19, 2e8) - (sum + 2e8)) <
		    0.016 * sum);
	histogram_merge(&merged, &histogram, 200000000);
	assert_int_equal(merged.count, 78);
	assert_true(histogram_percentile(&merged, 1) == 200000000);
	histogram_add_many(&merged, 0, 1000);
	assert_true(histogram_percentile(&merged, 0.5) == 0);
	histogram_free(&histogram);
	histogram_free(&merged);
}

static void check_escape(const char *text, const char *expected)
{
	char *safe = text_escape(text);

	assert_string_equal(safe, expected);
	free(safe);
}

static void test_text(void **state)
{
	char *text, number[TEXT_NUMBER_ROOM];
	static const char broken[] = "a\xff\xc3(\xe2\x82";
	char utf8[64] = { 0 };

	(void)state;
	check_escape("plain", "plain");
	check_escape("\x1b[31mred\x07\n\t", "\\x1b[31mred\\x07\\n\\t");
	check_escape("caf\xc3\xa9 \xe6\xbc\xa2", "caf\xc3\xa9 \xe6\xbc\xa2");
	check_escape("\xc2\x9b"
		     "31m",
		     "\\x9b31m");
	check_escape("\xe2\x80\xae"
		     "txt",
		     "\\u202etxt");
	check_escape("bad\xff", "bad\xef\xbf\xbd");
	assert_int_equal(text_to_utf8(utf8, broken, sizeof(broken)), 1 + 3 + 3 + 1 + 3 + 3 + 3);
	assert_string_equal(utf8, "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_int_equal(text_width("caf\xc3\xa9"), 4);
	assert_int_equal(text_width("\xe6\xbc\xa2\xe5\xad\x97"), 4);
	assert_int_equal(text_width("e\xcc\x81"), 1);
	for (unsigned width = 0; width < 12; width++)
		for (int cut = TEXT_CUT_END; cut <= TEXT_CUT_START; cut++) {
			text = text_shorten("ab\xe6\xbc\xa2"
					    "cd\xc3\xa9"
					    "fgh",
					    width, (enum text_cut)cut);
			assert_true(text_width(text) <= width);
			free(text);
		}
	text = text_shorten("/a/b/train.py", 8, TEXT_CUT_START);
	assert_string_equal(text, "\xe2\x80\xa6rain.py");
	free(text);
	assert_string_equal(text_ns(number, 812), "812 ns");
	assert_string_equal(text_ns(number, 1214), "1.21 \xc2\xb5s");
	assert_string_equal(text_ns(number, 999600), "1.00 ms");
	assert_string_equal(text_ns(number, 12.41e9), "12.4 s");
	assert_string_equal(text_ns(number, 999.4e9), "999 s");
	assert_string_equal(text_ns(number, 999.6e9), "16.7 min");
	assert_string_equal(text_ns(number, 7200e9), "2.00 h");
	assert_string_equal(text_ns(number, 100 * 86400e9), "100 d");
	assert_string_equal(text_us(number, 1214), "1.21");
	assert_string_equal(text_us(number, 99960), "100");
	assert_string_equal(text_count(number, 1234567), "1\xc2\xa0"
							 "234\xc2\xa0"
							 "567");
	assert_string_equal(text_bytes(number, 999), "999 B");
	assert_string_equal(text_bytes(number, 1.5e9), "1.50 GB");
}

enum { NAME, SITE, LINE, LOW, MEDIAN, SHARE, FLAG, ZERO, COLUMNS };

static const struct column columns[COLUMNS] = {
	[NAME] = { "name", "name", COLUMN_TEXT, 0, false },
	[SITE] = { "site.file", "site", COLUMN_PATH, 0, false },
	[LINE] = { "site.line", NULL, COLUMN_COUNT, 0, false },
	[LOW] = { "time_ns.p10", NULL, COLUMN_US, 0, false },
	[MEDIAN] = { "time_ns.median", "time", COLUMN_US, 0, false },
	[SHARE] = { "share", "share", COLUMN_PERCENT, 1, false },
	[FLAG] = { "flag", NULL, COLUMN_FLAG, 0, false },
	[ZERO] = { NULL, "nothing", COLUMN_US, 2, false },
};

static struct table *make(void)
{
	struct table *table = table_new(columns, COLUMNS);

	table_add_row(table);
	table_set_text(table, NAME, "one, \"two\"\x1b");
	table_set_text(table, SITE, "/some/where/far/away/train.py");
	table_set_number(table, LINE, 12);
	table_set_number(table, LOW, 100.04);
	table_set_number(table, MEDIAN, 1234.56);
	table_set_number(table, SHARE, 0.123456789);
	table_set_number(table, FLAG, 1);
	table_set_number(table, ZERO, 0);
	table_add_row(table);
	table_set_text(table, NAME, "bad\xff utf");
	return table;
}

static void test_json(void **state)
{
	static const char text[] =
		"[{\"name\":\"one, \\\"two\\\"\\u001b\",\"site\":{\"file\":\"/some/where/far/away/train.py\","
		"\"line\":12},\"time_ns\":{\"p10\":100,\"median\":1234.6},\"share\":0.123457,\"flag\":true},"
		"{\"name\":\"bad\xef\xbf\xbd utf\",\"site\":null,\"time_ns\":null,\"share\":null,"
		"\"flag\":null}]";
	struct table *table = make();
	json_t *json = table_json(table), *expected = json_loads(text, 0, NULL);

	(void)state;
	assert_non_null(expected);
	assert_true(json_equal(json, expected));
	json_decref(json);
	json_decref(expected);
	table_free(table);
}

static char *printed(const struct table *table, bool csv)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (csv)
		table_print_csv(table, out);
	else
		table_print_text(table, NULL, out);
	fclose(out);
	return text;
}

static void test_csv(void **state)
{
	struct table *table = make();
	char *text = printed(table, true);

	(void)state;
	assert_string_equal(text,
			    "name,site.file,site.line,time_ns.p10,time_ns.median,share,flag\r\n"
			    "\"one, \"\"two\"\"\x1b\",/some/where/far/away/train.py,12,100,1234.6,"
			    "0.123457,true\r\n"
			    "bad\xef\xbf\xbd utf,,,,,,\r\n");
	free(text);
	table_free(table);
}

/* Lines are never wider than the terminal, and nothing is shown of a column that is all zeros first. */
static void test_fits(void **state)
{
	struct table *table = make();
	char width[8];

	(void)state;
	for (unsigned columns_wide = 60; columns_wide <= 200; columns_wide++) {
		snprintf(width, sizeof(width), "%u", columns_wide);
		setenv("COLUMNS", width, 1);
		char *text = printed(table, false), *rest = text, *line;

		while ((line = strsep(&rest, "\n"))) {
			assert_true(text_width(line) <= columns_wide);
			assert_null(strchr(line, '\x1b'));
			assert_true(!*line || line[strlen(line) - 1] != ' ');
		}
		free(text);
	}
	setenv("COLUMNS", "60", 1);
	char *text = printed(table, false);
	assert_null(strstr(text, "nothing"));
	free(text);
	setenv("COLUMNS", "90", 1);
	text = printed(table, false);
	assert_non_null(strstr(text, "12.3 %"));
	assert_non_null(strstr(text, "1.23"));
	assert_non_null(strstr(text, "\xe2\x80\x93"));
	free(text);
	table_free(table);
}

static void test_arena(void **state)
{
	struct arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < 3000; i++) {
		uint64_t *memory = arena_get(&arena, i);

		assert_true(((uintptr_t)memory & 7) == 0);
		for (size_t byte = 0; byte < i; byte++)
			assert_int_equal(((char *)memory)[byte], 0);
		memset(memory, 0xaa, i);
	}
	memset(arena_get(&arena, 1 << 20), 1, 1 << 20);
	assert_string_equal(arena_text(&arena, "a\xff", 2), "a\xef\xbf\xbd");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram), cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),      cmocka_unit_test(test_csv),
		cmocka_unit_test(test_fits),      cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
