/* origin.c: see origin.h. */
#include "analyzer/origin.h"

#include <ctype.h>
#include <string.h>

#include "analyzer/memory.h"

/*
 * Behind "python3.11/" (or "pypy3.10/") in a path that goes through lib, lib64 or a framework: the
 * standard library or a site-packages; NULL elsewhere. "python311.zip/" is the same, packed.
 */
static const char *behind_library(const char *file)
{
	for (const char *at = file; (at = strstr(at, "/lib")); at++) {
		const char *in = at + 4;

		if (!strncmp(in, "64", 2))
			in += 2;
		if (*in++ != '/')
			continue;
		if (strncmp(in, "python", 6) && strncmp(in, "pypy", 4))
			continue;
		in += *in == 'p' && in[1] == 'y' && in[2] == 'p' ? 4 : 6;
		if (!isdigit((unsigned char)*in))
			continue;
		while (isdigit((unsigned char)*in) || *in == '.' || *in == 't')
			in++;
		if (!strncmp(in, "zip/", 4))
			return in + 4;
		if (*in == '/')
			return in + 1;
	}
	return NULL;
}

static const char *behind_packages(const char *file)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *last = NULL;

	for (unsigned i = 0; i < 2; i++)
		for (const char *at = file; (at = strstr(at, folders[i])); at++)
			if (!last || at + strlen(folders[i]) > last)
				last = at + strlen(folders[i]);
	return last;
}

bool origin_is_user(const char *file, const char *name)
{
	/* What has no file: a cell, -c and standard input are the user's; the rest was generated. */
	static const char *const own[] = { "<string>",       "<stdin>",    "<input>", "<console>",
					   "<ipython-input", "<ipykernel", "<cell",   "<doctest" };

	if (!*file)
		return false;
	if (*file == '<') {
		/* dataclasses generates methods. */
		if (!strncmp(name, "__create_fn__", 13))
			return false;
		for (unsigned i = 0; i < sizeof(own) / sizeof(*own); i++)
			if (!strncmp(file, own[i], strlen(own[i])))
				return true;
		return false;
	}
	return !behind_packages(file) && !behind_library(file);
}

bool origin_is_import(const char *file)
{
	return !strncmp(file, "<frozen importlib", 17);
}

bool origin_is_runner(const char *file)
{
	static const char *const runners[] = { "IPython/core/", "ipykernel/", "asyncio/",
					       "tornado/",      "_pytest/",   "pluggy/" };
	const char *behind = behind_packages(file);

	if (!behind)
		behind = behind_library(file);
	for (unsigned i = 0; behind && i < sizeof(runners) / sizeof(*runners); i++)
		if (!strncmp(behind, runners[i], strlen(runners[i])))
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

enum origin_step origin_step(const char *file, const char *name)
{
	const char *torch = strstr(file, "/torch/");

	if (!torch)
		return STEP_NONE;
	if (ends_with(file, "/torch/nn/modules/module.py") && ends_with(name, "_call_impl"))
		return STEP_MODULE;
	/* What wraps the step of any optimizer, and those that come with torch. */
	if (ends_with(file, "/torch/optim/optimizer.py") && ends_with(name, "wrapper"))
		return STEP_OPTIMIZER;
	return strstr(torch, "/torch/optim/") && !strstr(torch, "/lr_scheduler.py") &&
			       !strstr(torch, "/swa_utils.py") && ends_with(name, "step") ?
		       STEP_OPTIMIZER :
		       STEP_NONE;
}

/* Where a file's name begins to say something. */
static const char *short_start(const char *file)
{
	const char *start = behind_packages(file);

	if (!start)
		start = behind_library(file);
	if (!start)
		start = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	return start;
}

char *origin_short(const char *file)
{
	const char *start = *file == '<' ? file : short_start(file);

	return strcpy(memory_zero(strlen(start) + 1, 1), start);
}

char *origin_module(const char *file)
{
	const char *start = short_start(file);
	size_t length = strlen(start);
	char *out;

	if (length > 3 && !strcmp(start + length - 3, ".py"))
		length -= 3;
	if (length > 9 && !strncmp(start + length - 9, "/__init__", 9))
		length -= 9;
	out = memory_zero(length + 1, 1);
	for (size_t i = 0; i < length; i++)
		out[i] = start[i] == '/' ? '.' : start[i];
	return out;
}
