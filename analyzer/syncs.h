/*
 * syncs.h: the findings of a trace, judged, in order of weight, for people and programs.
 *
 * For cmd_*.c and gate.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analyzer/findings.h"
#include "analyzer/settings.h"
#include "analyzer/table.h"

/*
 * Where they are shown. What happens once, as programs warm up, is no finding, nor is what a setting of
 * the environment makes the program do.
 */
enum sync_section {
	SYNC_HIDDEN,
	SYNC_EXPLICIT,
	SYNC_DESIGN,
	SYNC_POLLING,
	SYNC_LEFT_OUT, /* from here on not in text */
	SYNC_WARM_UP,
	SYNC_SECTIONS
};

#define SYNC_FINDINGS                                                                              \
	(1u << SYNC_HIDDEN | 1u << SYNC_EXPLICIT | 1u << SYNC_DESIGN | 1u << SYNC_LEFT_OUT)

struct sync {
	const struct finding *finding;
	struct verdict verdict;
	enum sync_section section;
	enum setting left_out; /* because of what */
	/* Set by a gate. */
	bool allowed, known, fails;
};

struct syncs {
	struct model *model;
	uint32_t main_loop;
	unsigned settings; /* that were on */
	struct sync *rows;
	uint32_t count, room;
};

/* `main_loop`: a node, or LOOP_NONE. */
void syncs_make(struct syncs *syncs, struct model *model, uint32_t main_loop);
void syncs_free(struct syncs *syncs);

/* How many in a section; `frequent`: those alone that are not in one pass only. */
uint32_t syncs_count(const struct syncs *syncs, enum sync_section section, bool frequent);

/* At most `top` rows (0: all) of the sections in the mask `1 << section`. */
struct table *syncs_table(const struct syncs *syncs, unsigned sections, bool frequent,
			  uint32_t top);

/* The same as an array, with the native stack of each that has one. */
json_t *syncs_json(const struct syncs *syncs, unsigned sections, uint32_t top);

/* Text: a section with its heading; nothing where it is empty. */
void syncs_print_section(const struct syncs *syncs, enum sync_section section, bool frequent,
			 uint32_t top);
/* What to do about the hidden ones that were printed. */
void syncs_print_hints(const struct syncs *syncs, uint32_t top);
/* Where in native code those wait that happened more than once; nothing where no stack is known. */
void syncs_print_stacks(const struct syncs *syncs, uint32_t top);
