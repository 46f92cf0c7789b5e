/*
 * install.c: pyhooks' entry points, called by preload/ as preload/sources.def says.
 */
#include <stdio.h>

#include "pyhooks/pyhooks.h"

void pyhooks_python_ready(void);
void pyhooks_library_loaded(void);
void pyhooks_fork_child(void);

/* Calls that these releases run without asking the hook, once the instruction is specialised. */
static const struct hole {
	uint32_t first, before;
	const char *text;
} holes[] = {
	{ 0x030b00, 0x030b04, "; __getitem__ in Python is not seen" }, /* python/cpython#104405 */
	{ 0x030d00, 0x030e00, "; __init__ of a class that is called is not seen" },
};

static const char *hole_text(void)
{
	for (unsigned i = 0; i < sizeof(holes) / sizeof(*holes); i++) {
		if (python.full_version >= holes[i].first && python.full_version < holes[i].before)
			return holes[i].text;
	}
	return "";
}

/* The version alone, of "3.11.7 (main, ...)". */
static int version_length(const char *text)
{
	int length = 0;

	while (text[length] > ' ')
		length++;
	return length;
}

void pyhooks_python_ready(void)
{
	const bool wanted = tare_process.layers & TARE_LAYER_FRAMES;
	const char *problem = python_find();
	const char *version = python.version_text ? python.version_text() : "of no known version";
	const int length = version_length(version);
	char detail[256];

	if (!problem) {
		tare_python_site = site_now;
		problem = wanted ? eval_install() : NULL;
	}
	if (problem)
		snprintf(detail, sizeof(detail), "CPython %.*s: %s", length, version, problem);
	else if (!wanted)
		snprintf(detail, sizeof(detail),
			 "not asked for; lines are still known, CPython %.*s", length, version);
	else
		snprintf(detail, sizeof(detail), "eval-frame hook, CPython %.*s%s", length, version,
			 hole_text());
	tare_note_layer("frames", problem ? 2 : wanted, detail);
	if (problem)
		tare_verbose("no frames: ", detail);
}

/* Python itself is found by preload/, before pyhooks_python_ready. */
void pyhooks_library_loaded(void) {}

/* What was defined before is known by its generation. */
void pyhooks_fork_child(void) {}
