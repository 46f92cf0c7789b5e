/*
 * The other oracle: from which lines of Python each call came that may wait. With TARE_SIM_LINES set,
 * every synchronise and every copy between host and device is written to a file, one per process, with
 * the calling thread's Python stack. lines.py reads it.
 *
 * CPython itself writes the stack, by what its faulthandler uses in a signal handler: no GIL, no memory,
 * no reference counts. It looks at the calling thread alone, which is in here and so holds still.
 *
 * Called by the core. Must not fail: without a file, or without CPython, there is no stack or no line.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int file = -1;
static int pid; /* whose file it is */

static const char *const kinds[SIM_COLUMNS] = { "-", "H2H", "H2D", "D2H", "D2D", "default" };

bool core_lines_on(void)
{
	static int on = -1;

	if (on < 0) {
		const char *pattern = getenv("TARE_SIM_LINES");

		on = pattern && *pattern;
	}
	return on;
}

/* With the lock held. */
static void open_file(void)
{
	char path[4096];

	pid = getpid();
	snprintf(path, sizeof(path), "%s.%d", getenv("TARE_SIM_LINES"), pid);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void write_stack(void)
{
	static void *(*state)(void);
	static int (*initialized)(void);
	static void (*write_traceback)(int fd, void *state);

	if (!write_traceback) {
		state = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
		initialized = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
		write_traceback = (void (*)(int, void *))dlsym(RTLD_DEFAULT, "_Py_DumpTraceback");
	}
	if (!state || !initialized || !write_traceback || !initialized() || !state())
		return;
	write_traceback(file, state());
}

void core_lines_add(const char *function, int column, size_t bytes, bool pageable)
{
	char name[16] = "";

	if (!core_lines_on())
		return;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	pthread_mutex_lock(&lock);
	if (pid != getpid()) {
		if (file >= 0)
			close(file);
		open_file();
	}
	if (file >= 0) {
		dprintf(file, "call %d %s %s %zu %s %s\n", gettid(), function, kinds[column], bytes,
			pageable ? "pageable" : "-", name);
		write_stack();
	}
	pthread_mutex_unlock(&lock);
}

void core_lines_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}
