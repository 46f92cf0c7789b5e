/*
 * launch.c: runs a program, see launch.h.
 */
#include "analyzer/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "analyzer/message.h"

#define STATUS_NOT_FOUND  127
#define STATUS_CANNOT_RUN 126

char *launch_find_library(void)
{
	static const char *const places[] = { "libtare.so", "../lib/tare/libtare.so" };
	char self[PATH_MAX], path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length > 0) {
		self[length] = '\0';
		const char *folder = dirname(self);

		for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
			snprintf(path, sizeof(path), "%s/%s", folder, places[i]);
			char *found = realpath(path, NULL);

			if (found)
				return found;
		}
	}
	complain("libtare.so is neither beside this command nor in ../lib/tare");
	return NULL;
}

/* ------------------------------------------------------------------------------- running */

static volatile sig_atomic_t child;
static const int passed_on[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
#define PASSED_ON (sizeof(passed_on) / sizeof(*passed_on))

/* What the terminal sends goes to all of its foreground processes: the program has it already. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)context;
	if (info->si_code != SI_KERNEL)
		kill((pid_t)child, number);
	errno = saved_errno;
}

/* A signal that was ignored when we were started stays so, for the program too (nohup). */
static void catch_signals(void)
{
	struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction old;

	for (unsigned i = 0; i < PASSED_ON; i++) {
		if (sigaction(passed_on[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(passed_on[i], &action, NULL);
	}
}

/* In the child. The pipe closes by itself when the program has taken over. */
static void run(char **argv, const sigset_t *mask, int pipe_end)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	int error = errno;
	bool told = write(pipe_end, &error, sizeof(error)) == sizeof(error);

	_exit(told && error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

int launch_run(char **argv, struct watch *watch, int *error_p)
{
	sigset_t block, old;
	int ends[2], status, error = 0;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		*error_p = errno;
		return STATUS_CANNOT_RUN;
	}
	sigemptyset(&block);
	for (unsigned i = 0; i < PASSED_ON; i++)
		sigaddset(&block, passed_on[i]);
	sigprocmask(SIG_BLOCK, &block, &old);
	pid_t pid = fork();
	if (pid == 0)
		run(argv, &old, ends[1]);
	if (pid < 0)
		error = errno;
	child = pid;
	close(ends[1]);
	if (pid > 0)
		catch_signals();
	sigprocmask(SIG_SETMASK, &old, NULL);

	if (pid > 0 && read(ends[0], &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(ends[0]);
	if (pid > 0) {
		watch_start(watch, pid);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		watch_stop(watch);
	}
	*error_p = error;
	if (error)
		return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ------------------------------------------------------------------------------- obstacles */

bool launch_find_command(const char *command, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	if (strchr(command, '/')) {
		snprintf(path, PATH_MAX, "%s", command);
		return access(path, X_OK) == 0;
	}
	while (folders && *folders) {
		size_t length = strcspn(folders, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folders, command);
		if (access(path, X_OK) == 0)
			return true;
		folders += length + (folders[length] == ':');
	}
	return false;
}

#define SCRIPTS_MAX 4 /* a script may name another one */

/* The dynamic linker that an ELF file names; "": none. False: it cannot be read. */
static bool read_linker(int fd, const Elf64_Ehdr *header, char linker[PATH_MAX])
{
	*linker = '\0';
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		size_t length = segment.p_filesz < PATH_MAX ? segment.p_filesz : PATH_MAX;
		if (!length || pread(fd, linker, length, (off_t)segment.p_offset) < (ssize_t)length)
			return false;
		linker[length - 1] = '\0';
		break;
	}
	return true;
}

static const char *elf_obstacle(int fd, const Elf64_Ehdr *header)
{
	char linker[PATH_MAX];

	if (header->e_ident[EI_CLASS] == ELFCLASS32)
		return "is a 32-bit program, and libtare.so a 64-bit one; a 64-bit Python is wanted";
	if (header->e_machine != EM_X86_64)
		return "is a program for another kind of processor than libtare.so, run by an emulator; "
		       "a Python for this one is wanted";
	if (!read_linker(fd, header, linker))
		return NULL;
	if (!*linker)
		return "is linked statically, so LD_PRELOAD does not reach it; a Python that is linked "
		       "dynamically is wanted";
	if (strstr(linker, "ld-musl"))
		return "is built for musl, and libtare.so for glibc; a Python for glibc is wanted (with "
		       "containers: an image that is not Alpine's)";
	return NULL;
}

/* What the kernel would run in its place: of "#!/usr/bin/env python3" that. False: it is no script. */
static bool script_interpreter(int fd, char path[PATH_MAX])
{
	char line[PATH_MAX], *word, *rest = line;
	ssize_t length = pread(fd, line, sizeof(line) - 1, 0);
	bool found = false;

	if (length < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[length] = '\0';
	line[2 + strcspn(line + 2, "\n")] = '\0';
	rest += 2;
	while ((word = strsep(&rest, " \t"))) {
		const char *name = strrchr(word, '/');

		if (!*word || (found && *word == '-'))
			continue; /* env -S */
		if (!launch_find_command(word, path))
			return found;
		found = true;
		if (!name || strcmp(name, "/env") != 0)
			break;
	}
	return found;
}

static const char *file_obstacle(int fd)
{
	struct stat status;
	Elf64_Ehdr header;

	if ((fstat(fd, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID)) ||
	    fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return "runs with privileges of its own (setuid, setgid or capabilities), where the "
		       "dynamic linker ignores LD_PRELOAD; put 'tare record' behind it, as in "
		       "'sudo tare record ...', or take the privileges off a copy";
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
		return elf_obstacle(fd, &header);
	return NULL;
}

char *launch_obstacle(const char *command)
{
	const char *obstacle = NULL;
	char path[PATH_MAX], *out = NULL;
	bool script = launch_find_command(command, path);

	for (unsigned i = 0; script && !obstacle && i < SCRIPTS_MAX; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return NULL;
		obstacle = file_obstacle(fd);
		if (obstacle && asprintf(&out, "%s %s", path, obstacle) < 0)
			out = NULL;
		script = !obstacle && script_interpreter(fd, path);
		close(fd);
	}
	return out;
}
