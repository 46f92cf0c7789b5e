/*
 * plain_evaluator.c: a library to preload that installs a frame evaluator which only forwards (PEP 523),
 * when libtare.so would: what changes with it is what any evaluator changes.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

typedef void *evaluator(void *thread, void *frame, int throwflag);

static evaluator *evaluate;

static void *forward(void *thread, void *frame, int throwflag)
{
	return evaluate(thread, frame, throwflag);
}

static int install(void *unused)
{
	void *(*interpreter)(void) =
		(void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
	void (*set)(void *, evaluator *) = (void (*)(void *, evaluator *))dlsym(
		RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");

	(void)unused;
	evaluate = (evaluator *)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	if (interpreter && set && evaluate)
		set(interpreter(), forward);
	return 0;
}

int stat64(const char *path, struct stat64 *status)
{
	static int (*real)(const char *, struct stat64 *);
	static int (*is_initialized)(void);
	static bool done;

	if (!real) {
		real = (int (*)(const char *, struct stat64 *))dlsym(RTLD_NEXT, "stat64");
		is_initialized = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	}
	if (is_initialized && !done && is_initialized()) {
		int (*add)(int (*)(void *), void *) =
			(int (*)(int (*)(void *), void *))dlsym(RTLD_DEFAULT, "Py_AddPendingCall");

		done = add && add(install, NULL) == 0;
	}
	return real(path, status);
}
