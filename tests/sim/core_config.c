/*
 * The simulator's knobs, read from the environment once, when the core is loaded. See SIM_KNOBS.
 * A value that is no number is ignored: the default holds.
 */
#include <stdlib.h>
#include <string.h>
#include "core.h"

static struct sim_config config = {
#define KNOB(name, field, value, meaning) .field = (value),
	SIM_KNOBS(KNOB)
#undef KNOB
};

const struct sim_config *sim_config(void)
{
	return &config;
}

static void read_number(const char *name, double *value)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text)
		return;
	double number = strtod(text, &end);
	if (!*end && number >= 0)
		*value = number;
}

/* CUDA_VISIBLE_DEVICES: a list that ends at its first entry that is no device. */
static int visible_devices(int present)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	int count = 0;

	if (!text)
		return present;
	while (*text && count < present) {
		char *end;
		long device = strtol(text, &end, 10);

		if (end == text || device < 0 || device >= present)
			break;
		count++;
		text = end + strcspn(end, ",");
		text += *text == ',';
	}
	return count;
}

__attribute__((constructor(101))) static void config_read(void)
{
#define KNOB(name, field, value, meaning) read_number("TARE_SIM_" name, &config.field);
	SIM_KNOBS(KNOB)
#undef KNOB
	if (config.devices > SIM_MAX_DEVICES)
		config.devices = SIM_MAX_DEVICES;
	if (config.queue < 1)
		config.queue = 1;
	config.device_count = visible_devices((int)config.devices);

	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
	config.blocking = blocking && !strcmp(blocking, "1");
}

bool core_table_find(const char *table, const char *name, bool whole, double *value)
{
	size_t name_length = strlen(name);

	while (table && *table) {
		size_t length = strcspn(table, ",");
		const char *colon = memrchr(table, ':', length);
		size_t key = colon ? (size_t)(colon - table) : 0;

		if (key && (whole ? key == name_length && !memcmp(name, table, key) :
				    memmem(name, name_length, table, key) != NULL)) {
			*value = strtod(colon + 1, NULL);
			return true;
		}
		table += length;
		table += *table == ',';
	}
	return false;
}
