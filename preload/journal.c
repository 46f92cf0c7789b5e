/* journal.c: see journal.h. */
#include "preload/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/join.h"
#include "preload/process.h"

#define LINE_BYTES (PATH_MAX + 64)

static struct text start(char *line, const char *what)
{
	struct text text = text_in(line, LINE_BYTES);

	text_add(&text, what);
	text_add(&text, " ");
	text_add_number(&text, (uint64_t)getpid());
	text_add(&text, " ");
	return text;
}

/* One write: lines of several processes do not mix. */
static void append(struct text *text, const char *end)
{
	int saved_errno = errno, fd;
	struct stat status;

	text_add(text, end);
	text_add(text, "\n");
	fd = open(process.knobs.journal, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &status) == 0 &&
	    trace_limit_allows((uint64_t)status.st_size + text_length(text))) {
		/* Where it fails, tare record knows less, that is all. */
		ssize_t written = write(fd, text->start, text_length(text));

		(void)written;
	}
	if (fd >= 0)
		close(fd);
	errno = saved_errno;
}

void journal_add(const char *what, const char *end)
{
	char line[LINE_BYTES];

	if (!*process.knobs.journal)
		return;
	struct text text = start(line, what);
	append(&text, end);
}

void journal_error(int error, const char *path)
{
	char line[LINE_BYTES];

	if (!*process.knobs.journal)
		return;
	struct text text = start(line, "failed");
	text_add_number(&text, (uint64_t)error);
	text_add(&text, " ");
	append(&text, path);
}

void journal_loaded(void)
{
	char path[PATH_MAX];
	int saved_errno = errno;

	if (!*process.knobs.journal)
		return;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	errno = saved_errno;
	journal_add("loaded", path);
}
