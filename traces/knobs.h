/*
 * knobs.h: the table of knobs, and how their values are read.
 *
 * For preload/, which obeys them, and for `tare record`, which sets them: so both take the same
 * values. Must not allocate; reads nothing but its arguments.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KNOB_PREFIX "TARE_"

/* Bits, so that a set of layers is a number. The names are those of TARE_LAYERS. */
enum tare_layer {
	TARE_LAYER_FRAMES = 1,
	TARE_LAYER_OPS = 2,
	TARE_LAYER_CUDA = 4,
	TARE_LAYER_GPU = 8,
	TARE_LAYER_OPS_RECORD_FUNCTION = 16, /* ops, by RecordFunction instead of taps */
};

enum knob_children { KNOB_CHILDREN_OPS, KNOB_CHILDREN_ALL, KNOB_CHILDREN_NONE };
enum knob_stacks { KNOB_STACKS_NONE, KNOB_STACKS_WAIT };

typedef const char *knob_file; /* not copied */
typedef uint64_t knob_bytes;
typedef uint64_t knob_seconds; /* in nanoseconds */
typedef bool knob_flag;
typedef uint32_t knob_layers; /* enum tare_layer bits */
typedef enum knob_children knob_children;
typedef enum knob_stacks knob_stacks;

enum knob_id {
#define KNOB(NAME, field, type, initial, meaning) KNOB_##NAME,
#include "traces/knobs.def"
#undef KNOB
	KNOB_COUNT
};

struct knobs {
#define KNOB(NAME, field, type, initial, meaning) knob_##type field;
#include "traces/knobs.def"
#undef KNOB
};

struct knob_desc {
	const char *name; /* without the prefix */
	const char *type;
	const char *initial; /* the default, as text */
	const char *meaning;
};

extern const struct knob_desc knob_descs[KNOB_COUNT];

/* Sets one knob from its text. Returns false, and sets nothing, where the value is wrong. */
bool knob_set(struct knobs *knobs, enum knob_id id, const char *value);

void knobs_set_defaults(struct knobs *knobs);

/* The knob that an environment entry "TARE_NAME=value" sets, or KNOB_COUNT; *value_p: its value. */
enum knob_id knob_of_entry(const char *entry, const char **value_p);
