/*
 * fuzz_calibration.c: any bytes as a kept calibration, and as the ELF file whose build id is in its key:
 * what is read lies within them, and is no more than there is room for.
 */
#include <stdlib.h>
#include <string.h>

#include "traces/calibration_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct trace_str text, const char *data, size_t size)
{
	if (text.data < data || text.data + text.length > data + size)
		abort();
}

static void parse(const char *data, size_t size, const char *key)
{
	struct record_CALIBRATION records[CALIBRATION_WEIGHTS_MAX];
	unsigned count = calibration_parse(data, size, key, records);

	if (count > CALIBRATION_WEIGHTS_MAX)
		abort();
	for (unsigned i = 0; i < count; i++)
		check_within(records[i].kind, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char build[41] = "?";

	parse((const char *)data, size, NULL);
	parse((const char *)data, size, "a key");
	calibration_build(data, size, build);
	if (strlen(build) > 40)
		abort();
	return 0;
}
