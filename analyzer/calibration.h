/*
 * calibration.h: what `tare calibrate` has kept on this machine, and measuring it.
 *
 * For cmd_calibrate.c, cmd_record.c and weight.c. The file itself: traces/calibration_file.h.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "traces/calibration_file.h"

struct definitions;

struct calibration {
	char *text; /* the records' strings lie in it */
	struct record_CALIBRATION records[CALIBRATION_WEIGHTS_MAX];
	unsigned count;
};

/* Reads `path`, where it is of `key` (NULL: any). False where there is none, or it is damaged. */
bool calibration_read(struct calibration *calibration, const char *path, const char *key);
void calibration_free(struct calibration *calibration);

/* That of a trace's interpreter, if that is still the one there. */
bool calibration_find(struct calibration *calibration, const struct definitions *definitions);

/* Where that of an interpreter (its real path) is kept. False where it cannot be, and *why_p says why. */
bool calibration_place(char path[PATH_MAX], char key[CALIBRATION_KEY_MAX], const char *exe,
		       const char *library, const char **why_p);

/*
 * The interpreter that a command runs: itself, or the one in its first line. Its real path; free it.
 * NULL: none that looks like a Python.
 */
char *calibration_interpreter(const char *command);
