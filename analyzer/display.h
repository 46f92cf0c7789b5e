/*
 * display.h: text for terminals: UTF-8, escapes, widths, shortening, numbers with units.
 *
 * For all of analyzer/. All text inside is UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies `data` with each byte that is not part of valid UTF-8 (and each NUL) replaced by U+FFFD. `out`
 * NULL: counts alone. Returns the bytes written, without a terminator.
 */
size_t text_to_utf8(char *out, const char *data, size_t length);

/* A copy in which control characters are escaped (\x1b, \n); free it. Invalid UTF-8 is replaced. */
char *text_escape(const char *text);

/* Columns on a terminal. */
unsigned text_width(const char *text);

enum text_cut { TEXT_CUT_END, TEXT_CUT_START };

/* A copy of at most `width` columns, with an ellipsis where it was cut; free it. */
char *text_shorten(const char *text, unsigned width, enum text_cut cut);

/* Three significant digits and the unit: "812 ns", "1.21 µs", "12.4 s". */
#define TEXT_NUMBER_ROOM 40
const char *text_ns(char out[TEXT_NUMBER_ROOM], double ns);
/* The same as a plain number of µs: "0.81", "1.21", "12.4", "4 321". */
const char *text_us(char out[TEXT_NUMBER_ROOM], double ns);
const char *text_count(char out[TEXT_NUMBER_ROOM], double count);
const char *text_percent(char out[TEXT_NUMBER_ROOM], double ratio);
const char *text_bytes(char out[TEXT_NUMBER_ROOM], double bytes);

/* A bar of `ratio` (0 to 1) of `width` columns, in eighths of a column. */
#define TEXT_BAR_ROOM 256
const char *text_bar(char out[TEXT_BAR_ROOM], double ratio, unsigned width);
