/*
 * gate.h: `tare syncs` as a gate: which findings fail a build, which are known.
 *
 * For cmd_syncs.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "analyzer/syncs.h"

struct gate_options {
	unsigned classes; /* bits: enum finding_class_name, of hidden findings */
	unsigned kinds;   /* bits: enum finding_kind, unless they happen once */
	bool explicit, by_design;
	double max_per_pass; /* negative: not asked for */
	const char *allow, *baseline;
};

#define GATE_OPTIONS_NONE                                                                          \
	{                                                                                          \
		.max_per_pass = -1                                                                 \
	}

struct gate {
	bool asked;
	uint32_t failed; /* findings */
	double per_pass; /* hidden ones in a pass, without those allowed; NAN: not asked for */
	double max_per_pass;
	bool too_many;
	const struct syncs *syncs;
	struct allowed *allowed;
	uint32_t allowed_count, allowed_room;
	const char *allow;
};

/* The list of --fail-on; false where a word is none. */
bool gate_parse_fail_on(struct gate_options *options, const char *list);

/* Marks the rows of `syncs`. Returns STATUS_FINE, STATUS_GATE, or STATUS_WRONG after saying why. */
int gate_run(struct gate *gate, const struct gate_options *options, struct syncs *syncs,
	     const char *command);

/* null where nothing was asked. */
json_t *gate_json(const struct gate *gate);
void gate_print(const struct gate *gate);
void gate_free(struct gate *gate);
