/* Line tables with any bytes: every lookup ends, within the table. */
#include <stddef.h>

#include "analyzer/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t versions[] = { 0x0309, 0x030a, 0x030b, 0x030e };

	if (size < 1)
		return 0;
	struct trace_str lines = { (const char *)data + 1, (uint32_t)(size - 1) };
	for (unsigned i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		for (uint32_t unit = 0; unit < 300; unit += 7)
			lines_lookup(versions[i], data[0], lines, unit);
		lines_lookup(versions[i], UINT32_MAX, lines, UINT32_MAX);
	}
	return 0;
}
