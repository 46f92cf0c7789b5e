/*
 * The oracle: how often each exported function was called, per thread and copy kind, with the bytes
 * copied, the time that the call waited for the device, and how long that had nothing to do after it. With TARE_SIM_COUNTS set the counters
 * live in a shared mapping of a file, one per process, so that they survive any kind of death and
 * can be read at any moment; README.md gives the layout, counts.py reads it.
 *
 * Called by every front end at each call, by the core for waits. Must not fail: where there is no
 * file, or no room in it, nothing is counted and the file's header says so.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core.h"

enum { MAX_FUNCTIONS = 2048, MAX_THREADS = 256, LIBRARY_BYTES = 32, NAME_BYTES = 96 };

struct cell {
	_Atomic uint64_t calls, bytes, wait_ns, idle_ns, host_ns;
};

struct name {
	char library[LIBRARY_BYTES];
	char function[NAME_BYTES];
};

struct slot {
	_Atomic uint32_t tid;
	uint32_t reserved;
	char comm[16];
	struct cell cells[MAX_FUNCTIONS][SIM_COLUMNS];
};

struct counts {
	char magic[8];
	uint32_t pid, max_functions, max_threads, columns;
	uint32_t library_bytes, name_bytes, names_offset, slots_offset, slot_bytes;
	_Atomic uint32_t functions, threads;
	uint32_t left_out; /* functions or threads that found no room */
	char reserved[8];
	struct name names[MAX_FUNCTIONS];
	struct slot slots[MAX_THREADS];
};

static struct sim_library *libraries;
static unsigned rows; /* of all libraries together */
static const char *host_us_table;
static struct counts *counts; /* MAP_FAILED: counting is off */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct slot *slot;
static _Thread_local struct cell *cell;
static _Thread_local const char *called;

/* The file's path, with the process id for %p, or after the name where there is none. */
static bool counts_path(char *path, size_t size)
{
	const char *pattern = getenv("TARE_SIM_COUNTS");

	if (!pattern || !*pattern)
		return false;
	const char *at = strstr(pattern, "%p");
	int n = at ? snprintf(path, size, "%.*s%d%s", (int)(at - pattern), pattern, getpid(),
			      at + 2) :
		     snprintf(path, size, "%s.%d", pattern, getpid());
	return n > 0 && (size_t)n < size;
}

static struct counts *counts_open(void)
{
	char path[4096];
	struct counts *c = MAP_FAILED;

	if (!counts_path(path, sizeof(path)))
		return c;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return c;
	if (!ftruncate(fd, sizeof(*c)))
		c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c == MAP_FAILED)
		return c;
	c->pid = (uint32_t)getpid();
	c->max_functions = MAX_FUNCTIONS;
	c->max_threads = MAX_THREADS;
	c->columns = SIM_COLUMNS;
	c->library_bytes = LIBRARY_BYTES;
	c->name_bytes = NAME_BYTES;
	c->names_offset = offsetof(struct counts, names);
	c->slots_offset = offsetof(struct counts, slots);
	c->slot_bytes = sizeof(struct slot);
	memcpy(c->magic, "TARESIM3", 8);
	return c;
}

/* With the lock held. */
static void library_enter(struct sim_library *lib)
{
	if (lib->base + lib->count > MAX_FUNCTIONS) {
		counts->left_out++;
		return;
	}
	for (unsigned i = 0; i < lib->count; i++) {
		struct name *name = &counts->names[lib->base + i];

		snprintf(name->library, sizeof(name->library), "%s", lib->soname);
		snprintf(name->function, sizeof(name->function), "%s", lib->functions[i]);
	}
	if (counts->functions < lib->base + lib->count)
		atomic_store(&counts->functions, lib->base + lib->count);
}

static void counts_start(void)
{
	pthread_mutex_lock(&lock);
	if (!counts) {
		struct counts *c = counts_open();

		counts = c;
		if (c != MAP_FAILED)
			for (struct sim_library *lib = libraries; lib; lib = lib->next)
				library_enter(lib);
	}
	pthread_mutex_unlock(&lock);
}

static void host_us_read(struct sim_library *lib)
{
	double us;

	for (unsigned i = 0; i < lib->count; i++) {
		if (!core_table_find(host_us_table, lib->functions[i], true, &us))
			continue;
		if (!lib->host_us)
			lib->host_us = calloc(lib->count, sizeof(*lib->host_us));
		if (!lib->host_us)
			return;
		lib->host_us[i] = us;
	}
}

void sim_library_add(struct sim_library *lib)
{
	if (!host_us_table)
		host_us_table = getenv("TARE_SIM_HOST_US");
	if (host_us_table)
		host_us_read(lib);
	pthread_mutex_lock(&lock);
	lib->base = rows;
	rows += lib->count;
	lib->next = libraries;
	libraries = lib;
	if (counts && counts != MAP_FAILED)
		library_enter(lib);
	pthread_mutex_unlock(&lock);
}

static struct slot *slot_take(void)
{
	uint32_t i = atomic_fetch_add(&counts->threads, 1);

	if (i >= MAX_THREADS) {
		atomic_store(&counts->threads, MAX_THREADS);
		counts->left_out++;
		i = MAX_THREADS - 1;
	}
	pthread_getname_np(pthread_self(), counts->slots[i].comm, sizeof(counts->slots[i].comm));
	atomic_store(&counts->slots[i].tid, (uint32_t)gettid());
	return &counts->slots[i];
}

static void count(struct sim_library *lib, unsigned function, int column, size_t bytes)
{
	if (__builtin_expect(!counts, 0))
		counts_start();
	cell = NULL;
	if (counts == MAP_FAILED || lib->base + function >= MAX_FUNCTIONS)
		return;
	if (!slot)
		slot = slot_take();
	cell = &slot->cells[lib->base + function][column];
	atomic_fetch_add_explicit(&cell->calls, 1, memory_order_relaxed);
	if (bytes)
		atomic_fetch_add_explicit(&cell->bytes, bytes, memory_order_relaxed);
}

int sim_call(struct sim_library *lib, unsigned function, int column, size_t bytes)
{
	count(lib, function, column, bytes);
	called = lib->functions[function];
	if (core_lines_on() && strstr(called, "Synchronize"))
		core_lines_add(called, SIM_PLAIN, 0, false);
	if (lib->host_us && lib->host_us[function] > 0)
		core_busy_wait(core_now() + (uint64_t)(lib->host_us[function] * 1000));
	return core.forked ? SIM_NOT_INITIALIZED : SIM_OK;
}

const char *core_called(void)
{
	return called ? called : "?";
}

void core_count_wait(uint64_t ns)
{
	if (cell)
		atomic_fetch_add_explicit(&cell->wait_ns, ns, memory_order_relaxed);
}

struct cell *core_count_call(void)
{
	return cell;
}

void core_count_idle(struct cell *waited, uint64_t ns)
{
	if (waited)
		atomic_fetch_add_explicit(&waited->idle_ns, ns, memory_order_relaxed);
}

struct sim_timed sim_timed_begin(void)
{
	cell = NULL;
	return (struct sim_timed){ counts == MAP_FAILED ? 0 : core_now() };
}

void sim_timed_end(const struct sim_timed *timed)
{
	if (cell && timed->start)
		atomic_fetch_add_explicit(&cell->host_ns, core_now() - timed->start,
					  memory_order_relaxed);
}

/* The child counts in a file of its own, from its first call on. */
void core_count_forked(void)
{
	if (counts && counts != MAP_FAILED)
		munmap(counts, sizeof(*counts));
	pthread_mutex_init(&lock, NULL);
	counts = NULL;
	slot = NULL;
	cell = NULL;
}

int sim_missing(struct sim_library *lib, unsigned function)
{
	static _Atomic bool said[MAX_FUNCTIONS];
	unsigned row = lib->base + function;

	if (row < MAX_FUNCTIONS && !atomic_exchange(&said[row], true))
		dprintf(2, "tare sim: %s: %s is not modelled\n", lib->soname,
			lib->functions[function]);
	return SIM_NOT_SUPPORTED;
}
