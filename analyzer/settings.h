/*
 * settings.h: what was set that makes a program wait where it otherwise would not: what is no finding of
 * its own then.
 *
 * For syncs.c and cmd_*.c, once a trace was read. traces/settings.def has what the environment says;
 * autograd's anomaly mode is known from the code that ran.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "analyzer/findings.h"

struct syncs;

enum setting {
	SETTING_NONE,
#define SETTING(NAME, variable, zero_is_off, leaves_out, why) SETTING_##NAME,
#include "traces/settings.def"
#undef SETTING
	SETTING_ANOMALY,
	SETTING_COUNT,
};

/* Bits: 1 << enum setting. */
unsigned settings_find(const struct model *model);

/* That because of which the finding is none; SETTING_NONE: it is one. */
enum setting settings_cause(unsigned settings, const struct finding_key *key);

/* "CUDA_LAUNCH_BLOCKING"; NULL for SETTING_NONE. */
const char *setting_name(enum setting setting);

/* That which leaves nothing to be told; SETTING_NONE: there is none. */
enum setting settings_blinding(unsigned settings);

/* [{setting, why, left_out}]. */
json_t *settings_json(const struct syncs *syncs);
/* A line each; nothing where none was on. */
void settings_print(const struct syncs *syncs);
