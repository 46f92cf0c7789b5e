/*
 * join.h: puts short texts together, without stdio or malloc, for files' names and lines on stderr.
 *
 * For preload/. What does not fit is cut off, and `cut` says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
	char *start, *next, *end; /* end: where the terminator goes at the latest */
	bool cut;
};

static inline struct text text_in(char *room, size_t bytes)
{
	room[0] = '\0';
	return (struct text){ room, room, room + bytes - 1, false };
}

static inline void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
	if (length > (size_t)(text->end - text->next)) {
		length = (size_t)(text->end - text->next);
		text->cut = true;
	}
	memcpy(text->next, bytes, length);
	text->next += length;
	*text->next = '\0';
}

static inline void text_add(struct text *text, const char *string)
{
	text_add_bytes(text, string, strlen(string));
}

static inline void text_add_number(struct text *text, uint64_t number)
{
	char digits[20];
	char *digit = digits + sizeof(digits);

	do {
		*--digit = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	text_add_bytes(text, digit, (size_t)(digits + sizeof(digits) - digit));
}

static inline size_t text_length(const struct text *text)
{
	return (size_t)(text->next - text->start);
}
