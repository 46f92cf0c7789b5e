/*
 * writer_clock.c: the clock of a trace, for writer.h. Runs inside the traced process. By system call: libc's own
 * are cancellation points, and a thread must not be cancelled in here.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traces/writer.h"

#define TSC_SHIFT       2 /* a unit of 4 ticks is 1 to 2 ns */
#define CLOCK_TRIES     4u
#define CLOCK_GAP_UNITS 1000u

struct trace_clock_pair trace_clock_pair(const struct trace_file *file)
{
	struct trace_clock_pair pair = { 0, 0 };
	uint64_t gap = UINT64_MAX;

	/* An interrupt between the clocks would bend the time of the whole trace: then once more. */
	for (unsigned i = 0; i < CLOCK_TRIES && gap > CLOCK_GAP_UNITS; i++) {
		uint64_t before = trace_now(file);
		uint64_t ns = machine_clock_ns(CLOCK_MONOTONIC);
		uint64_t more = trace_now(file) - before;

		if (more < gap) {
			gap = more;
			pair = (struct trace_clock_pair){ before + more / 2, ns };
		}
		if (!file->clock_is_tsc)
			break;
	}
	return pair;
}

struct trace_clock_pair trace_clock_start(struct trace_file *file)
{
	file->clock_is_tsc = machine_ticks_invariant();
	file->clock_shift = file->clock_is_tsc ? TSC_SHIFT : 0;
	return trace_clock_pair(file);
}

bool trace_ticks_trusted(const char *path)
{
	static const char *const others[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies" };
	char name[32];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t length = fd < 0 ? -1 : syscall(SYS_read, fd, name, sizeof(name) - 1);

	if (fd >= 0)
		syscall(SYS_close, fd);
	name[length > 0 ? length : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(name, others[i]) == 0)
			return false;
	return true;
}
