/*
 * resolve.c: finds the functions that wrappers stand in front of.
 *
 * For preload/ and the event sources, at first use of a function: takes the dynamic linker's lock.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "preload/runtime.h"

#pragma weak dlvsym /* see process_start */

#define CANDIDATES_MAX 8

/* Loaded files whose names begin with `stem`: a vendored copy is libcudart-e409450e.so.11.0. */
struct candidates {
	const char *stem;
	size_t stem_bytes;
	unsigned count;
	char paths[CANDIDATES_MAX][512];
};

static int collect(struct dl_phdr_info *info, size_t size, void *context)
{
	struct candidates *candidates = context;
	const char *base = strrchr(info->dlpi_name, '/');
	size_t bytes = strlen(info->dlpi_name) + 1;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (candidates->count < CANDIDATES_MAX && bytes <= sizeof(candidates->paths[0]) &&
	    !strncmp(base, candidates->stem, candidates->stem_bytes))
		memcpy(candidates->paths[candidates->count++], info->dlpi_name, bytes);
	return 0;
}

static void *find_symbol(void *handle, const char *name, const char *version)
{
	return version ? dlvsym(handle, name, version) : dlsym(handle, name);
}

/* The handle is never closed: a library that we call into must stay. */
static void *find_in(const char *file, const char *name, const char *version)
{
	void *handle = dlopen(file, RTLD_NOLOAD | RTLD_LAZY);

	return handle ? find_symbol(handle, name, version) : NULL;
}

/*
 * By SONAME first, since RTLD_NEXT does not see what was opened RTLD_LOCAL, and finds the first of
 * two versions of a library.
 */
void *tare_find_function(const char *soname, const char *version, const char *name)
{
	struct candidates candidates = { .stem = soname, .count = 0 };
	void *found = find_in(soname, name, version);

	if (!found)
		found = find_symbol(RTLD_NEXT, name, version);
	if (found)
		return found;

	/* Names are copied first: dlopen inside dl_iterate_phdr could deadlock. */
	candidates.stem_bytes = strcspn(soname, ".");
	dl_iterate_phdr(collect, &candidates);
	for (unsigned i = 0; i < candidates.count && !found; i++)
		found = find_in(candidates.paths[i], name, version);
	return found;
}

void *tare_find_for(const void *caller, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	Dl_info info;

	if (!found && dladdr(caller, &info) && info.dli_fname)
		found = find_in(info.dli_fname, name, NULL);
	return found;
}
