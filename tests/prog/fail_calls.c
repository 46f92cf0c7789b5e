/*
 * fail_calls.c: a library to preload behind libtare.so: fails the n-th system call that libtare.so makes
 * itself, and none of the program's.
 *
 *   FAIL_AT=n      which one, from 1 (0: none); FAIL_FOR=m: that and m - 1 more (default 1)
 *   FAIL_ERRNO=e   with which error (default: EIO)
 *   FAIL_SHORT=1   a write writes the half instead
 *   FAIL_COUNT=F   appends a line to file F at the process's end: the number of calls, then how many of each
 *                  kind before the first block was written and from then on: "57 open=6+12 mmap=4+2 ..."
 *
 * fail_hold, for the program: 1: the next such call of a thread that is not the first is held; 2: it is, until 0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

_Atomic int fail_hold;

static uintptr_t start, end;
/* ftruncate and clone: libtare.so makes no such call, and this tells if it ever does. */
enum kind { MMAP, OPEN, READ, WRITE, FTRUNCATE, CLONE, OTHER, KINDS };
static const char *const names[KINDS] = { "mmap",      "open",  "read", "write",
					  "ftruncate", "clone", "other" };

static atomic_int calls, counts[KINDS][2];
static atomic_bool writes_blocks;
static int at, first_after, error = EIO, is_short;
static pid_t owner;

static int find(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	(void)unused;
	if (!base || strcmp(base + 1, "libtare.so") != 0)
		return 0;
	start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t top = start + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && top > end)
			end = top;
	}
	return 1;
}

static int number(const char *name, int initial)
{
	const char *value = getenv(name);

	return value ? atoi(value) : initial;
}

/* Constructors of what comes later in LD_PRELOAD run earlier: libtare.so's own comes after this. */
__attribute__((constructor)) static void set_up(void)
{
	dl_iterate_phdr(find, NULL);
	owner = getpid();
	at = number("FAIL_AT", 0);
	first_after = at + number("FAIL_FOR", 1);
	error = number("FAIL_ERRNO", EIO);
	is_short = number("FAIL_SHORT", 0);
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("FAIL_COUNT");

	if (path && getpid() == owner) {
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

		dprintf(fd, "%d", calls);
		for (int kind = 0; kind < KINDS; kind++)
			dprintf(fd, " %s=%d+%d", names[kind], counts[kind][0], counts[kind][1]);
		dprintf(fd, "\n");
		close(fd);
	}
}

/* Whether this call, from `caller`, is to fail. */
static int fails(enum kind kind, const void *caller)
{
	if ((uintptr_t)caller < start || (uintptr_t)caller >= end || !start)
		return 0;
	int n = ++calls, armed = 1;

	counts[kind][writes_blocks]++;
	if (gettid() != getpid() && atomic_compare_exchange_strong(&fail_hold, &armed, 2)) {
		while (fail_hold == 2)
			usleep(100);
	}
	return at && n >= at && n < first_after;
}

#define CALLER __builtin_return_address(0)
#define REAL(name)                                                                                 \
	static __typeof__(name) *real;                                                             \
	if (!real)                                                                                 \
	real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL_(kind, value)                                                                         \
	do {                                                                                       \
		if (fails(kind, CALLER)) {                                                         \
			errno = error;                                                             \
			return value;                                                              \
		}                                                                                  \
	} while (0)

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	REAL(mmap);
	FAIL_(MMAP, MAP_FAILED);
	return real(address, bytes, protection, flags, fd, offset);
}

int open(const char *path, int flags, ...)
{
	REAL(open);
	va_list more;

	va_start(more, flags);
	mode_t mode = va_arg(more, mode_t);
	va_end(more);
	FAIL_(OPEN, -1);
	return real(path, flags, mode);
}

#define SIMPLE(kind, result, value, name, params, args)                                            \
	result name params                                                                         \
	{                                                                                          \
		REAL(name);                                                                        \
		FAIL_(kind, value);                                                                \
		return real args;                                                                  \
	}
SIMPLE(READ, ssize_t, -1, read, (int fd, void *room, size_t bytes), (fd, room, bytes))
SIMPLE(WRITE, ssize_t, -1, write, (int fd, const void *data, size_t bytes), (fd, data, bytes))
SIMPLE(OTHER, int, -1, fstat, (int fd, struct stat *status), (fd, status))
SIMPLE(OTHER, off_t, -1, lseek, (int fd, off_t offset, int whence), (fd, offset, whence))
SIMPLE(OTHER, char *, NULL, getcwd, (char *room, size_t bytes), (room, bytes))
SIMPLE(OTHER, int, -1, gethostname, (char *room, size_t bytes), (room, bytes))
SIMPLE(OTHER, ssize_t, -1, readlink, (const char *path, char *room, size_t bytes),
       (path, room, bytes))
SIMPLE(OTHER, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
SIMPLE(FTRUNCATE, int, -1, ftruncate, (int fd, off_t length), (fd, length))
SIMPLE(OTHER, int, -1, mprotect, (void *address, size_t bytes, int protection),
       (address, bytes, protection))

/* These answer with the error itself. */
#undef FAIL_
#define FAIL_(kind, value)                                                                         \
	do {                                                                                       \
		if (fails(kind, CALLER))                                                           \
			return error;                                                              \
	} while (0)
SIMPLE(OTHER, int, 0, pthread_key_create, (pthread_key_t * key, void (*destroy)(void *)),
       (key, destroy))
SIMPLE(CLONE, int, 0, pthread_create,
       (pthread_t *restrict thread, const pthread_attr_t *restrict how, void *(*run)(void *),
	void *restrict argument),
       (thread, how, run, argument))
SIMPLE(OTHER, int, 0, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
SIMPLE(OTHER, int, 0, pthread_getattr_np, (pthread_t thread, pthread_attr_t *attributes),
       (thread, attributes))

long syscall(long what, ...)
{
	REAL(syscall);
	long a[6];
	va_list more;

	va_start(more, what);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	/* A file that is there already, to write at its end alone. */
	if (what == SYS_openat &&
	    (a[2] & (O_ACCMODE | O_APPEND | O_CREAT)) == (O_WRONLY | O_APPEND))
		writes_blocks = true;
	enum kind kind = what == SYS_openat ? OPEN :
			 what == SYS_writev ? WRITE :
			 what == SYS_read   ? READ :
			 what == SYS_clone  ? CLONE :
					      OTHER;
	int failing = what != SYS_close && what != SYS_gettid && what != SYS_rt_sigprocmask &&
		      fails(kind, CALLER);

	if (failing && is_short && what == SYS_writev) {
		const struct iovec *pieces = (const void *)a[1];
		struct iovec half = pieces[0];

		half.iov_len /= 2;
		return real(what, a[0], &half, 1L);
	}
	if (failing) {
		errno = error;
		return -1;
	}
	return real(what, a[0], a[1], a[2], a[3], a[4], a[5]);
}
