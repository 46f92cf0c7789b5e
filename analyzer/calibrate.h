/*
 * calibrate.h: measuring what tare costs with an interpreter on this machine, and keeping it.
 *
 * For cmd_calibrate.c and cmd_record.c. calibrate_run.c runs calibrate.py bare and traced, in turns; the same
 * process also measures, where it ends, what C alone costs (preload/own_cost.c). calibrate.c concludes.
 */
#pragma once

#include <stdbool.h>

#include "traces/calibration_file.h"

extern const char calibrate_program[];

struct calibrate_weight {
	char kind[20];
	uint32_t distance, interval_ns;
	double inside_ns, outside_ns, error_ns;
};

struct calibrate_result {
	struct calibrate_weight weights[CALIBRATION_WEIGHTS_MAX];
	unsigned count;
};

/* Runs `python`, a path. False: *why is one line that says why not; free it. */
bool calibrate_measure(struct calibrate_result *result, const char *python, const char *library,
		       char **why);

/* Writes it where it is kept. False: as above. */
bool calibrate_keep(const struct calibrate_result *result, const char *path, const char *key,
		    char **why);
