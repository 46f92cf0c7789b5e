/*
 * held_flush.c: HOW BEFORE: while another thread is in the middle of writing a full block, and stays there:
 * forks, or ends by HOW. After BEFORE of its calls it is held; with 0, while it gets its first block. fail_calls.c is preloaded and holds that thread; without libtare.so it holds nobody,
 * and the thread comes to its end. TARE_TEST_CALLS: a file for how many calls that thread made.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaStreamQuery(void *stream);

enum { MANY = 200000 };

static _Atomic int *hold; /* of fail_calls.c: 1: hold the next thread, 2: it is held, 0: let it go */
static _Atomic int ended;
static _Atomic unsigned long nowhere, *made = &nowhere;

static void calls(int count)
{
	while (count--)
		cudaStreamQuery(NULL);
}

static void *run(void *before)
{
	for (intptr_t i = 0; i < MANY; i++) {
		if (i == (intptr_t)before)
			*hold = 1;
		++*made;
		cudaStreamQuery(NULL);
	}
	ended = 1;
	return NULL;
}

static int fork_once(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		calls(11);
		_exit(7);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *path = getenv("TARE_TEST_CALLS");
	pthread_t thread;

	if (path) {
		int fd = open(path, O_RDWR | O_CREAT, 0600);

		if (ftruncate(fd, sizeof(*made)) != 0)
			return 1;
		made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
	}
	calls(10);
	hold = dlsym(RTLD_DEFAULT, "fail_hold");
	if (!hold)
		return 2;
	pthread_create(&thread, NULL, run, (void *)(intptr_t)atoi(argc > 2 ? argv[2] : "0"));
	while (*hold != 2 && !ended)
		usleep(100);
	calls(90);
	printf("%s\n", how);
	fflush(stdout);
	if (!strcmp(how, "fork")) {
		printf("%d %d\n", fork_once(), fork_once());
		*hold = 0;
		pthread_join(thread, NULL);
		calls(1000);
		return 0;
	}
	if (!strcmp(how, "_exit"))
		_exit(6);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "SIGKILL"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "exec"))
		execl("/bin/sh", "sh", "-c", "echo executed; exit 8", NULL);
	return 5;
}
