/*
 * calibration_file.h: the file in which `tare calibrate` keeps what tare costs, one for each interpreter.
 *
 * For preload/, which copies it into traces, and analyzer/, which makes it. A text:
 *
 *     tare calibration 1
 *     KEY
 *     weight KIND DISTANCE INTERVAL_NS INSIDE_PS OUTSIDE_PS ERROR_PS     as in the CALIBRATION record
 *     end
 *
 * KEY names the interpreter's file, the processor and libtare's build: what was measured holds for them
 * alone. Nothing here allocates, or uses stdio.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "traces/schema.h"

#define CALIBRATION_WEIGHTS_MAX 64u
#define CALIBRATION_FILE_MAX    16384u
#define CALIBRATION_KEY_MAX     6144u
#define CALIBRATION_NAME_MAX    32u

#define CALIBRATION_FIRST_LINE "tare calibration 1\n"
#define CALIBRATION_LAST_LINE  "end\n"

/* Values of TARE_CALIBRATION that are no file. */
#define CALIBRATION_NONE    "none"
#define CALIBRATION_MEASURE "measure"

/* The processor's model, as /proc/cpuinfo names it. */
void calibration_processor(char out[64]);

/* The build id in the notes of an ELF file whose first bytes lie in `image`, in hexadecimal; "": none. */
void calibration_build(const void *image, size_t bytes, char out[41]);

/*
 * KEY without a newline, for the interpreter `exe` (its real path) as it is now. False where there is none
 * such, or it does not fit.
 */
bool calibration_key(char out[CALIBRATION_KEY_MAX], const char *exe, const char *processor,
		     const char *build);

/* The name of the file of that key. */
void calibration_name(char out[CALIBRATION_NAME_MAX], const char *key);

/* The folder where such files are kept, by these variables' values or NULL. False where neither serves. */
bool calibration_folder(char *out, size_t room, const char *xdg_cache_home, const char *home);

/*
 * Reads the text of a file: fills at most CALIBRATION_WEIGHTS_MAX records, whose strings point into it.
 * Returns how many; 0 where it is of another key, cut off or damaged in any way. `key` NULL: of any.
 */
unsigned calibration_parse(const char *data, size_t bytes, const char *key,
			   struct record_CALIBRATION *records);
