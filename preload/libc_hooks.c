/*
 * libc_hooks.c: the functions of libc that are wrapped, only to be called at the right moments.
 *
 * An interpreter that has just become ready looks for its `site` module with stat64 (older builds:
 * __xstat64): there process_look() can hook it before the first line of the program runs. dlopen says
 * that libraries changed; what follows from it is done at the next stat in the same thread, because a
 * wrapper that did something after the real call would stand between it and its caller, whose RUNPATH
 * counts. So it has to be left by a jump (checked by a test). At other times a wrapper costs a compare.
 */
#include <dlfcn.h>
#include <sys/stat.h>

#include "preload/process.h"

static inline void look(void)
{
	if (tare_unlikely(tare_tls.libraries_changed | process.awaits_python))
		process_look();
}

#define REAL(name) (real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name))

/* Calls may come before any constructor of ours: the real function is found at the first. */
#define WRAP_STAT(name, params, args)                                                              \
	static int(*real_##name) params;                                                           \
	TARE_EXPORT int name params                                                                \
	{                                                                                          \
		if (tare_unlikely(!real_##name))                                                   \
			REAL(name);                                                                \
		look();                                                                            \
		return real_##name args;                                                           \
	}

int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);

WRAP_STAT(stat, (const char *path, struct stat *status), (path, status))
WRAP_STAT(stat64, (const char *path, struct stat64 *status), (path, status))
WRAP_STAT(__xstat, (int version, const char *path, struct stat *status), (version, path, status))
WRAP_STAT(__xstat64, (int version, const char *path, struct stat64 *status),
	  (version, path, status))

static void *(*real_dlopen)(const char *file, int mode);

/* Also without optimisation. */
#ifdef __clang__
#define BY_JUMP
#define RETURN_BY_JUMP __attribute__((musttail)) return
#else
#define BY_JUMP        __attribute__((optimize("O2")))
#define RETURN_BY_JUMP return
#endif

static TARE_COLD void find_dlopen(void)
{
	REAL(dlopen);
}

TARE_EXPORT BY_JUMP void *dlopen(const char *file, int mode)
{
	if (tare_unlikely(!real_dlopen))
		find_dlopen();
	tare_tls.libraries_changed = true;
	RETURN_BY_JUMP real_dlopen(file, mode);
}
