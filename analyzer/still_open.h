/*
 * still_open.h: what each thread was in when the trace ended: where a program was killed, or hangs.
 *
 * For cmd_report.c.
 */
#pragma once

#include <jansson.h>

#include "analyzer/model.h"

uint64_t still_open_count(const struct model *model);
json_t *still_open_json(const struct model *model);
void still_open_print(const struct model *model);
