/*
 * init.c: how the process is entered and left: start-up, the interpreter's readiness, fork, end.
 *
 * At load nothing happens but taking notes: most processes that inherit LD_PRELOAD are shells and
 * compilers. A process is armed when an interpreter is ready, or by its first CUDA call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "preload/join.h"
#include "preload/journal.h"
#include "preload/process.h"
#include "preload/stacks.h"

struct process process;

#define SOURCE(name)                                                                               \
	void name##_python_ready(void);                                                            \
	void name##_library_loaded(void);                                                          \
	void name##_fork_child(void);
#include "preload/sources.def"
#undef SOURCE

static const struct source {
	void (*python_ready)(void), (*library_loaded)(void), (*fork_child)(void);
} sources[] = {
#define SOURCE(name) { name##_python_ready, name##_library_loaded, name##_fork_child },
#include "preload/sources.def"
#undef SOURCE
};
#define SOURCE_COUNT (sizeof(sources) / sizeof(*sources))

/* The interpreter's functions, found by name; the GIL is needed for Py_GetVersion alone. */
static struct {
	int (*is_initialized)(void);
	int (*gil_state_check)(void);
	int (*add_pending_call)(int (*)(void *), void *);
	const char *(*get_version)(void);
	bool pending; /* the pending call is on its way */
	bool ready;
} python;

/* ------------------------------------------------------------------------------- knobs */

/* What a knob's text says may be overwritten by the program (setproctitle): keep a copy. */
static bool keep_text(char *room, const char *value)
{
	struct text text = text_in(room, PATH_MAX);

	text_add(&text, value);
	return !text.cut;
}

static void read_knobs(void)
{
	knobs_set_defaults(&process.knobs);
	for (char **entry = environ; entry && *entry; entry++) {
		const char *value;
		enum knob_id id = knob_of_entry(*entry, &value);

		if (id == KNOB_COUNT || !*value)
			continue;
		bool right = knob_set(&process.knobs, id, value);
		if (id == KNOB_OUTPUT)
			right = keep_text(process.output, value);
		if (id == KNOB_JOURNAL)
			right = keep_text(process.journal, value);
		if (id == KNOB_CALIBRATION)
			right = keep_text(process.calibration, value);
		if (!right)
			process.wrong_knobs |= 1u << id;
	}
	if (!*process.output || process.wrong_knobs & 1u << KNOB_OUTPUT)
		keep_text(process.output, knob_descs[KNOB_OUTPUT].initial);
	process.knobs.output = process.output;
	process.knobs.journal = process.journal;
	process.knobs.calibration = process.calibration;
	tare_process.layers = process.knobs.layers;
	tare_process.verbose = process.knobs.verbose;
}

void process_complain(void)
{
	uint32_t wrong = __atomic_exchange_n(&process.wrong_knobs, 0, __ATOMIC_RELAXED);

	for (unsigned id = 0; id < KNOB_COUNT; id++) {
		char line[512];
		struct text text = text_in(line, sizeof(line));

		if (!(wrong & 1u << id))
			continue;
		text_add(&text, "tare: wrong value of " KNOB_PREFIX);
		text_add(&text, knob_descs[id].name);
		text_add(&text, ", taken as ");
		text_add(&text, knob_descs[id].initial);
		text_add(&text, " (");
		text_add(&text, knob_descs[id].meaning);
		text_add(&text, ")\n");
		if (write(STDERR_FILENO, line, text_length(&text)) < 0)
			return;
	}
}

/* ------------------------------------------------------------------------------- Python */

static void find_python(void)
{
	if (python.is_initialized)
		return;
	python.gil_state_check = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Check");
	python.add_pending_call =
		(int (*)(int (*)(void *), void *))dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
	python.get_version = (const char *(*)(void))dlsym(RTLD_DEFAULT, "Py_GetVersion");
	if (!python.gil_state_check || !python.add_pending_call || !python.get_version)
		return;
	python.is_initialized = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
	process.awaits_python = python.is_initialized && process_mode() != PROCESS_OFF;
}

/*
 * Whether this is a process that multiprocessing started by exec: `python -c "from multiprocessing.…
 * import …"`. It does for its parent what a forked child would do.
 */
static bool is_multiprocessing_child(void)
{
	static const char start[] = "from multiprocessing.";
	char line[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	line[length] = '\0';
	for (const char *word = line; word < line + length; word += strlen(word) + 1) {
		if (strncmp(word, start, sizeof(start) - 1) == 0)
			return true;
	}
	return false;
}

static enum process_mode child_mode(void)
{
	switch (process.knobs.children) {
	case KNOB_CHILDREN_ALL: return PROCESS_RECORDS;
	case KNOB_CHILDREN_NONE: return PROCESS_OFF;
	case KNOB_CHILDREN_OPS: break;
	}
	return PROCESS_WAITS;
}

/* The GIL is held. */
static void python_ready(void)
{
	char version[64];
	struct text text = text_in(version, sizeof(version));

	if (python.ready)
		return;
	python.ready = true;
	process.awaits_python = false;
	if (process_mode() == PROCESS_IDLE)
		process_set_mode(is_multiprocessing_child() ? child_mode() : PROCESS_RECORDS);
	if (process_mode() == PROCESS_OFF)
		return;
	process_complain();
	const char *all = python.get_version(); /* "3.11.7 (main, ...) [GCC ...]" */
	text_add_bytes(&text, all, strcspn(all, " "));
	tare_note_info("python", version);
	journal_add("python", version);
	for (unsigned i = 0; i < SOURCE_COUNT; i++)
		sources[i].python_ready();
}

static int pending_call(void *unused)
{
	uint8_t state = tare_tls.state;
	int saved_errno = errno;

	(void)unused;
	tare_tls.state = TARE_INSIDE;
	python_ready();
	tare_tls.state = state;
	errno = saved_errno;
	return 0;
}

/* Before the interpreter is initialised nothing else may be called: it would crash from 3.12 on. */
static void look_at_python(void)
{
	if (!python.is_initialized())
		return;
	if (python.gil_state_check())
		python_ready();
	else if (!__atomic_exchange_n(&python.pending, true, __ATOMIC_RELAXED))
		python.pending = python.add_pending_call(pending_call, NULL) == 0;
}

TARE_COLD void process_look(void)
{
	uint8_t state = tare_tls.state;
	int saved_errno = errno;

	if (state == TARE_INSIDE || process_mode() == PROCESS_UNSTARTED)
		return;
	tare_tls.state = TARE_INSIDE;
	if (tare_tls.libraries_changed) {
		tare_tls.libraries_changed = false;
		find_python();
		for (unsigned i = 0; i < SOURCE_COUNT && python.ready; i++)
			sources[i].library_loaded();
	}
	if (process.awaits_python)
		look_at_python();
	tare_tls.state = state;
	errno = saved_errno;
}

/* ------------------------------------------------------------------------------- start, fork, end */

/*
 * Registered first, so it runs before all other handlers of the child. Its trace begins with its own
 * first event; what the parent had not yet written as a frame is the parent's.
 */
static void fork_child(void)
{
	bool inside = tare_tls.state == TARE_INSIDE, dead = tare_tls.state == TARE_DEAD;

	tare_tls.state = TARE_OFF;
	process.pid = getpid();
	process.load = trace_clock_pair(&tare_process.file);
	process.start_seconds = machine_clock_ns(CLOCK_REALTIME) / 1000000000u;
	tare_generation++;
	thread_fork_child(inside);
	process_forget();
	notes_forget();
	stacks_fork_child();
	if (process_mode() == PROCESS_WAITS || process_mode() == PROCESS_RECORDS || inside)
		process_set_mode(inside ? PROCESS_OFF : child_mode());
	for (unsigned i = 0; i < SOURCE_COUNT; i++)
		sources[i].fork_child();
	if (inside)
		tare_tls.state = TARE_INSIDE;
	else
		tare_tls.state = dead ? TARE_DEAD : TARE_NEW;
}

/*
 * What glibc alone has is weak, so that a program of musl that inherits LD_PRELOAD can be loaded: there
 * we stay as we are, unstarted. pthread_atfork is a part of the library itself that calls this.
 */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *library) __attribute__((weak));
#pragma weak gnu_get_libc_version
extern void *__dso_handle __attribute__((visibility("hidden")));

__attribute__((constructor)) static void process_start(void)
{
	if (!gnu_get_libc_version || !__register_atfork)
		return;
	process.load = trace_clock_start(&tare_process.file);
	process.start_seconds = machine_clock_ns(CLOCK_REALTIME) / 1000000000u;
	process.pid = getpid();
	if (!getcwd(process.folder, sizeof(process.folder)))
		process.folder[0] = '\0';
	read_knobs();
	thread_set_up();
	__register_atfork(NULL, NULL, fork_child, &__dso_handle);
	process_set_mode(process.knobs.layers ? PROCESS_IDLE : PROCESS_OFF);
	find_python();
	journal_loaded();
}

/* Threads may still run and record; exec, _exit and signals do not come here. */
__attribute__((destructor)) static void process_end(void)
{
	if (!process_is_open() || getpid() != process.pid)
		return;
	if (tare_tls.thread && tare_tls.state == TARE_ON)
		process_measure(tare_tls.thread);
	if (tare_tls.thread && tare_tls.state == TARE_ON) {
		tare_tls.state = TARE_INSIDE;
		notes_write(tare_tls.thread->buffer);
		tare_end(tare_tls.thread);
	}
	trace_file_end(&tare_process.file, TRACE_END_EXIT);
}
