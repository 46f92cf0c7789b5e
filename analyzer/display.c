/* display.c: see display.h. */
#include "analyzer/display.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/memory.h"

/* Reads one code point of `length` bytes at most. Returns its bytes, or 0 where it is not valid. */
static unsigned decode(const char *data, size_t length, uint32_t *point_p)
{
	const uint8_t *in = (const uint8_t *)data;
	unsigned bytes = in[0] < 0x80 ? 1 :
			 in[0] < 0xc2 ? 0 :
			 in[0] < 0xe0 ? 2 :
			 in[0] < 0xf0 ? 3 :
					4;
	uint32_t point = bytes == 1 ? in[0] : in[0] & (0x7fu >> bytes);

	if (!bytes || bytes > length || in[0] > 0xf4)
		return 0;
	for (unsigned i = 1; i < bytes; i++) {
		if ((in[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (in[i] & 0x3f);
	}
	if ((bytes == 3 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) ||
	    (bytes == 4 && (point < 0x10000 || point > 0x10ffff)))
		return 0;
	*point_p = point;
	return bytes;
}

size_t text_to_utf8(char *out, const char *data, size_t length)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t written = 0;

	for (size_t i = 0; i < length;) {
		uint32_t point;
		unsigned bytes = decode(data + i, length - i, &point);
		const char *from = bytes && point ? data + i : replacement;
		unsigned count = bytes && point ? bytes : 3;

		if (out)
			memcpy(out + written, from, count);
		written += count;
		i += bytes ? bytes : 1;
	}
	return written;
}

/* Controls, and the invisible marks that turn the direction of text around. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x2028 ||
	       point == 0x2029 || (point >= 0x202a && point <= 0x202e) || point == 0x200e ||
	       point == 0x200f || point == 0x061c || (point >= 0x2066 && point <= 0x2069);
}

char *text_escape(const char *text)
{
	size_t length = strlen(text), written = 0;
	char *out = memory_zero(length * 6 + 1, 1);

	for (size_t i = 0; i < length;) {
		uint32_t point;
		unsigned bytes = decode(text + i, length - i, &point);

		if (!bytes)
			written += (size_t)sprintf(out + written, "\xef\xbf\xbd");
		else if (point == '\n' || point == '\t')
			written += (size_t)sprintf(out + written, point == '\n' ? "\\n" : "\\t");
		else if (is_control(point))
			written += (size_t)sprintf(out + written,
						   point < 0x100 ? "\\x%02x" : "\\u%04x", point);
		else
			for (unsigned byte = 0; byte < bytes; byte++)
				out[written++] = text[i + byte];
		i += bytes ? bytes : 1;
	}
	return out;
}

static unsigned point_width(uint32_t point)
{
	if ((point >= 0x300 && point <= 0x36f) || (point >= 0x200b && point <= 0x200f) ||
	    (point >= 0xfe00 && point <= 0xfe0f))
		return 0;
	if ((point >= 0x1100 && point <= 0x115f) || (point >= 0x2e80 && point <= 0xa4cf) ||
	    (point >= 0xac00 && point <= 0xd7a3) || (point >= 0xf900 && point <= 0xfaff) ||
	    (point >= 0xfe30 && point <= 0xfe6f) || (point >= 0xff00 && point <= 0xff60) ||
	    (point >= 0x1f300 && point <= 0x1faff) || point >= 0x20000)
		return 2;
	return 1;
}

unsigned text_width(const char *text)
{
	size_t length = strlen(text);
	unsigned width = 0;

	for (size_t i = 0; i < length;) {
		uint32_t point;
		unsigned bytes = decode(text + i, length - i, &point);

		width += bytes ? point_width(point) : 1;
		i += bytes ? bytes : 1;
	}
	return width;
}

char *text_shorten(const char *text, unsigned width, enum text_cut cut)
{
	static const char ellipsis[] = "…";
	size_t length = strlen(text);
	char *out = memory_zero(length + sizeof(ellipsis), 1);
	unsigned total = text_width(text), kept = 0;
	size_t i = 0;

	if (total <= width || width == 0)
		return memcpy(out, text, width ? length : 0);
	/* Cut at the end: keep what fits before the ellipsis. At the start: skip until the rest fits. */
	unsigned limit = cut == TEXT_CUT_END ? width - 1 : total - (width - 1);
	while (i < length) {
		uint32_t point = 0;
		unsigned bytes = decode(text + i, length - i, &point);
		unsigned columns = bytes ? point_width(point) : 1;

		if (cut == TEXT_CUT_END ? kept + columns > limit : kept >= limit)
			break;
		kept += columns;
		i += bytes ? bytes : 1;
	}
	if (cut == TEXT_CUT_END)
		sprintf(out, "%.*s%s", (int)i, text, ellipsis);
	else
		sprintf(out, "%s%s", ellipsis, text + i);
	return out;
}

/* `value` with three significant digits, no exponent. */
static void three_digits(char *out, size_t room, double value)
{
	double size = fabs(value);

	snprintf(out, room, "%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
}

/* Groups of three digits, apart by thin spaces. */
static void grouped(char *out, size_t room, double value)
{
	char digits[TEXT_NUMBER_ROOM / 2];
	int count = snprintf(digits, sizeof(digits), "%.0f", value);
	size_t written = 0;

	if (count < 5 || value < 0 || value >= 1e12) {
		snprintf(out, room, "%.0f", value);
		return;
	}
	for (int i = 0; i < count && written + 4 < room; i++) {
		if (i && (count - i) % 3 == 0)
			written += (size_t)sprintf(out + written, "\xc2\xa0");
		out[written++] = digits[i];
	}
	out[written] = 0;
}

const char *text_ns(char out[TEXT_NUMBER_ROOM], double ns)
{
	static const struct {
		double from, scale;
		const char *unit;
	} units[] = {
		{ 2 * 86400e9, 86400e9, "d" }, { 2 * 3600e9, 3600e9, "h" },
		{ 999.5e9, 60e9, "min" },      { 999.5e6, 1e9, "s" },
		{ 999.5e3, 1e6, "ms" },        { 999.5, 1e3, "µs" },
	};

	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (fabs(ns) >= units[i].from) {
			char number[TEXT_NUMBER_ROOM - 8];

			three_digits(number, sizeof(number), ns / units[i].scale);
			snprintf(out, TEXT_NUMBER_ROOM, "%s %s", number, units[i].unit);
			return out;
		}
	snprintf(out, TEXT_NUMBER_ROOM, "%.0f ns", ns);
	return out;
}

const char *text_us(char out[TEXT_NUMBER_ROOM], double ns)
{
	if (fabs(ns) >= 999.5e3)
		grouped(out, TEXT_NUMBER_ROOM, ns / 1e3);
	else
		three_digits(out, TEXT_NUMBER_ROOM, ns / 1e3);
	return out;
}

const char *text_count(char out[TEXT_NUMBER_ROOM], double count)
{
	grouped(out, TEXT_NUMBER_ROOM, count);
	return out;
}

const char *text_percent(char out[TEXT_NUMBER_ROOM], double ratio)
{
	snprintf(out, TEXT_NUMBER_ROOM, "%.1f %%", ratio * 100);
	return out;
}

const char *text_bytes(char out[TEXT_NUMBER_ROOM], double bytes)
{
	static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
	unsigned unit = 0;
	char number[TEXT_NUMBER_ROOM - 8];

	while (bytes >= 999.5 && unit < 4) {
		bytes /= 1000;
		unit++;
	}
	if (unit)
		three_digits(number, sizeof(number), bytes);
	else
		snprintf(number, sizeof(number), "%.0f", bytes);
	snprintf(out, TEXT_NUMBER_ROOM, "%s %s", number, units[unit]);
	return out;
}

const char *text_bar(char out[TEXT_BAR_ROOM], double ratio, unsigned width)
{
	static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned eighths = ratio > 0 ? (unsigned)lround(fmin(ratio, 1) * width * 8) : 0;
	size_t written = 0;

	for (; eighths >= 8 && written + 8 < TEXT_BAR_ROOM; eighths -= 8)
		written += (size_t)sprintf(out + written, "█");
	sprintf(out + written, "%s", parts[eighths & 7]);
	return out;
}
