/* watch.c: see watch.h. */
#include "analyzer/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS      4000000L    /* between two looks */
#define LAST_NS       1000000000L /* each takes longer than the one before, up to that */
#define PROCESSES_MAX 1000u       /* of one look */
#define TEXT_MAX      (1 << 20)   /* of an environment */

/* A file of /proc, with a NUL behind it; free it. NULL: it cannot be read, errno tells why. */
static char *read_file(const char *path, size_t *length_p)
{
	size_t room = 4096, length = 0;
	char *text = malloc(room + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t part = -1;

	while (text && fd >= 0 && (part = read(fd, text + length, room - length)) > 0) {
		length += (size_t)part;
		if (length < room || room >= TEXT_MAX)
			continue;
		char *more = realloc(text, 2 * room + 1);
		if (!more)
			break;
		text = more;
		room *= 2;
	}
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (part < 0) {
		free(text);
		errno = error;
		return NULL;
	}
	text[length] = '\0';
	*length_p = length;
	return text;
}

static char *read_of(pid_t pid, const char *what, size_t *length_p)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return read_file(path, length_p);
}

static bool is_python(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* Whether libtare.so is in its LD_PRELOAD. An environment that is not there yet is empty as one of `env -i`. */
static bool is_preloaded(struct watch *watch, pid_t pid)
{
	size_t length;
	char *text = read_of(pid, "environ", &length);
	bool found = !text;

	for (const char *entry = text; text && entry < text + length; entry += strlen(entry) + 1)
		found |= strncmp(entry, "LD_PRELOAD=", 11) == 0 && strstr(entry, watch->library);
	if (text && !length && watch->empty != pid) {
		watch->empty = pid;
		found = true;
	}
	free(text);
	return found;
}

/* The last word of a name that may hold spaces and brackets is the state; the parent follows. */
static pid_t parent_of(pid_t pid)
{
	size_t length;
	char *text = read_of(pid, "stat", &length);
	const char *end = text ? strrchr(text, ')') : NULL;
	int parent = 0;

	if (end)
		sscanf(end + 1, " %*c %d", &parent);
	free(text);
	return parent;
}

static void look_at(struct watch *watch, pid_t pid)
{
	struct watch_found *found = &watch->found;
	char link[64], path[PATH_MAX];
	size_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t bytes = readlink(link, path, sizeof(path) - 1);
	if (bytes >= 0) {
		path[bytes] = '\0';
		if (!is_python(path) || is_preloaded(watch, pid))
			return;
	} else {
		char *name = errno == EACCES ? read_of(pid, "comm", &length) : NULL;

		snprintf(path, sizeof(path), "%.*s", name ? (int)strcspn(name, "\n") : 0,
			 name ? name : "");
		free(name);
		if (!is_python(path))
			return;
		found->foreign = true;
	}
	memcpy(found->path, path, sizeof(path));
	found->parent = parent_of(pid);
	found->pid = pid;
}

static void add_children(pid_t pid, pid_t *all, unsigned *count_p)
{
	char path[64];
	DIR *tasks;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		char file[64], *text, *next;
		size_t length;

		if (*entry->d_name == '.')
			continue;
		snprintf(file, sizeof(file), "task/%.20s/children", entry->d_name);
		next = text = read_of(pid, file, &length);
		while (next && *count_p < PROCESSES_MAX) {
			long child = strtol(next, &next, 10);

			if (child <= 0)
				break;
			all[(*count_p)++] = (pid_t)child;
		}
		free(text);
	}
	if (tasks)
		closedir(tasks);
}

static void look(struct watch *watch)
{
	pid_t all[PROCESSES_MAX] = { watch->root };
	unsigned count = 1;

	for (unsigned i = 0; i < count && !watch->found.pid; i++) {
		look_at(watch, all[i]);
		add_children(all[i], all, &count);
	}
}

static bool has_trace(const struct watch *watch)
{
	char text[16384];
	ssize_t length = pread(watch->journal, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	return !strncmp(text, "opened ", 7) || strstr(text, "\nopened ");
}

/* True: it is to end. */
static bool wait_for(struct watch *watch, long ns)
{
	struct timespec until;
	bool ends;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ns;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&watch->lock);
	if (!watch->ends)
		pthread_cond_timedwait(&watch->wake, &watch->lock, &until);
	ends = watch->ends;
	pthread_mutex_unlock(&watch->lock);
	return ends;
}

static void *run(void *context)
{
	struct watch *watch = context;
	long ns = FIRST_NS;

	while (!watch->found.pid && !wait_for(watch, ns) && !has_trace(watch)) {
		look(watch);
		ns = ns + ns / 4 < LAST_NS ? ns + ns / 4 : LAST_NS;
	}
	return NULL;
}

void watch_start(struct watch *watch, pid_t root)
{
	sigset_t all, old;

	watch->root = root;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_cond_init(&watch->wake, NULL);
	/* Signals are the main thread's: it waits for the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	watch->runs = watch->journal >= 0 && pthread_create(&watch->thread, NULL, run, watch) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void watch_stop(struct watch *watch)
{
	pthread_mutex_lock(&watch->lock);
	watch->ends = true;
	pthread_cond_signal(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	if (watch->runs)
		pthread_join(watch->thread, NULL);
}
