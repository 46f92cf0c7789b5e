/*
 * got.h: redirects calls that one loaded library makes of functions elsewhere.
 *
 * For sections.c. The library must be relocated; its slots are written once and stay so.
 */
#pragma once

#include <stdbool.h>

struct got_hook {
	const char *name;
	void *replacement;
	void **real; /* receives the function that was called so far */
	bool patched;
};

/*
 * Redirects in the library whose file name ends with `file`, and marks the hooks that are in place.
 */
void got_patch(const char *file, struct got_hook *hooks, unsigned count);
