/*
 * knobs.c: reads the values of knobs, see knobs.h.
 */
#include "traces/knobs.h"

#include <string.h>

#define NS_PER_SECOND 1000000000ull
#define SECONDS_MAX   (UINT64_MAX / NS_PER_SECOND / 2)

const struct knob_desc knob_descs[KNOB_COUNT] = {
#define KNOB(NAME, field, type, initial, meaning) { #NAME, #type, initial, meaning },
#include "traces/knobs.def"
#undef KNOB
};

/* A word that stands for a number. */
struct word {
	const char *name;
	uint32_t value;
};

#define WORDS_END                                                                                  \
	{                                                                                          \
		NULL, 0                                                                            \
	}

static const struct word layer_words[] = {
	{ "frames", TARE_LAYER_FRAMES },
	{ "ops", TARE_LAYER_OPS },
	{ "ops-rf", TARE_LAYER_OPS | TARE_LAYER_OPS_RECORD_FUNCTION },
	{ "cuda", TARE_LAYER_CUDA },
	{ "gpu", TARE_LAYER_GPU },
	{ "none", 0 },
	WORDS_END,
};

static const struct word children_words[] = {
	{ "ops", KNOB_CHILDREN_OPS },
	{ "all", KNOB_CHILDREN_ALL },
	{ "none", KNOB_CHILDREN_NONE },
	WORDS_END,
};

static const struct word stacks_words[] = {
	{ "none", KNOB_STACKS_NONE },
	{ "wait", KNOB_STACKS_WAIT },
	WORDS_END,
};

static const struct word flag_words[] = { { "0", 0 }, { "1", 1 }, WORDS_END };

static bool find_word(const struct word *words, const char *text, size_t length, uint32_t *value_p)
{
	for (; words->name; words++) {
		if (strlen(words->name) == length && memcmp(words->name, text, length) == 0) {
			*value_p = words->value;
			return true;
		}
	}
	return false;
}

/* Digits at *text_p, which it moves behind them. False where there are none, or too many. */
static bool read_number(const char **text_p, uint64_t *number_p)
{
	const char *text = *text_p;
	uint64_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return false;
	}
	if (text == *text_p)
		return false;
	*text_p = text;
	*number_p = number;
	return true;
}

static bool parse_file(const char *text, knob_file *value_p)
{
	*value_p = text;
	return true;
}

static bool parse_bytes(const char *text, knob_bytes *value_p)
{
	static const char units[] = "KMGT";
	uint64_t number;

	if (!read_number(&text, &number))
		return false;
	const char *unit = *text ? strchr(units, *text) : NULL;
	if (unit) {
		if (__builtin_mul_overflow(number, 1ull << 10 * (unit - units + 1), &number))
			return false;
		text++;
	}
	if (*text || !number)
		return false;
	*value_p = number;
	return true;
}

static bool parse_seconds(const char *text, knob_seconds *value_p)
{
	uint64_t seconds, ns = 0;

	if (!read_number(&text, &seconds) || seconds > SECONDS_MAX)
		return false;
	if (*text == '.') {
		uint64_t unit = NS_PER_SECOND / 10;

		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			ns += (uint64_t)(*text - '0') * unit;
	}
	if (*text)
		return false;
	*value_p = seconds * NS_PER_SECOND + ns;
	return true;
}

static bool parse_flag(const char *text, knob_flag *value_p)
{
	uint32_t value;

	if (!find_word(flag_words, text, strlen(text), &value))
		return false;
	*value_p = value;
	return true;
}

/* A list of words, with commas between them. */
static bool parse_layers(const char *text, knob_layers *value_p)
{
	uint32_t all = 0, value;

	for (;;) {
		size_t length = strcspn(text, ",");

		if (!find_word(layer_words, text, length, &value))
			return false;
		all |= value;
		if (!text[length])
			break;
		text += length + 1;
	}
	*value_p = all;
	return true;
}

static bool parse_children(const char *text, knob_children *value_p)
{
	uint32_t value;

	if (!find_word(children_words, text, strlen(text), &value))
		return false;
	*value_p = (enum knob_children)value;
	return true;
}

static bool parse_stacks(const char *text, knob_stacks *value_p)
{
	uint32_t value;

	if (!find_word(stacks_words, text, strlen(text), &value))
		return false;
	*value_p = (enum knob_stacks)value;
	return true;
}

bool knob_set(struct knobs *knobs, enum knob_id id, const char *value)
{
	switch (id) {
#define KNOB(NAME, field, type, initial, meaning)                                                  \
	case KNOB_##NAME:                                                                          \
		return parse_##type(value, &knobs->field);
#include "traces/knobs.def"
#undef KNOB
	case KNOB_COUNT: break;
	}
	return false;
}

void knobs_set_defaults(struct knobs *knobs)
{
	for (unsigned id = 0; id < KNOB_COUNT; id++)
		knob_set(knobs, (enum knob_id)id, knob_descs[id].initial);
}

enum knob_id knob_of_entry(const char *entry, const char **value_p)
{
	const size_t prefix = sizeof(KNOB_PREFIX) - 1;

	if (strncmp(entry, KNOB_PREFIX, prefix) != 0)
		return KNOB_COUNT;
	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		size_t length = strlen(knob_descs[id].name);

		if (strncmp(entry + prefix, knob_descs[id].name, length) == 0 &&
		    entry[prefix + length] == '=') {
			*value_p = entry + prefix + length + 1;
			return (enum knob_id)id;
		}
	}
	return KNOB_COUNT;
}
