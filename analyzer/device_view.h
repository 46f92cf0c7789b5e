/*
 * device_view.h: what devices did, for people: the report's part and its JSON.
 *
 * For cmd_report.c, once a trace was read.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

struct model;

/* Of the main loop where its passes are known, else of all that was recorded. Nothing without the layer gpu. */
void devices_print(struct model *model);

/* null where nothing is known. */
json_t *devices_json(struct model *model);
json_t *kernels_json(struct model *model);
