/*
 * process_fork.c: no Python: forks while other threads are busy with CUDA calls, exits through all
 * doors, cancels threads. Prints what happened, which must not depend on being traced.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
int cudaStreamQuery(void *stream);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaFreeHost(void *pointer);

static _Atomic int stop, started;

static void *spin(void *unused)
{
	cudaStreamQuery(NULL);
	started++;
	while (!stop)
		cudaStreamQuery(NULL);
	return unused;
}

static void calls(int count)
{
	while (count--)
		cudaStreamQuery(NULL);
}

/* A pthread key that is destroyed after ours still makes calls. */
static void late_calls(void *count)
{
	calls((int)(intptr_t)count);
}

static int wait_for(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int fork_once(int count)
{
	pid_t pid = fork();

	if (pid == 0) {
		calls(count);
		_exit(7);
	}
	return wait_for(pid);
}

static volatile sig_atomic_t handled, is_child, wrong_children;

/* The child goes on with what was interrupted, which may be tare's own code. */
static void fork_in_handler(int number)
{
	pid_t pid = fork();

	handled++;
	if (pid == 0) {
		signal(number, SIG_IGN);
		is_child = 1;
	} else if (wait_for(pid) != 7) {
		wrong_children++;
	}
}

static pthread_key_t key;

static void *end_with_calls(void *unused)
{
	calls(10);
	pthread_setspecific(key, (void *)(intptr_t)5);
	return unused;
}

static void *wait_for_cancel(void *unused)
{
	calls(10);
	started++;
	for (;;) {
		cudaStreamQuery(NULL);
		pthread_testcancel();
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t threads[3], thread;

	if (!strcmp(how, "fork")) {
		calls(100);
		printf("%d\n", fork_once(11));
	} else if (!strcmp(how, "fork-busy")) {
		int sum = 0;

		for (int i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, spin, NULL);
		while (started < 3)
			usleep(1000);
		for (int i = 0; i < 50; i++)
			sum += fork_once(11);
		stop = 1;
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		printf("%d\n", sum);
	} else if (!strcmp(how, "vfork")) {
		char *command[] = { "sh", "-c", "exit 6", NULL };
		pid_t pid;

		calls(100);
		posix_spawn(&pid, "/bin/sh", NULL, NULL, command, environ);
		printf("%d\n", wait_for(pid));
		pid = vfork();
		if (pid == 0)
			_exit(8);
		printf("%d\n", wait_for(pid));
		calls(100);
	} else if (!strcmp(how, "key")) {
		pthread_key_create(&key, late_calls);
		pthread_create(&thread, NULL, end_with_calls, NULL);
		pthread_join(thread, NULL);
		puts("joined");
	} else if (!strcmp(how, "cancel")) {
		void *result;

		for (int i = 0; i < 20; i++) {
			pthread_create(&thread, NULL, wait_for_cancel, NULL);
			while (started <= i)
				usleep(1000);
			pthread_cancel(thread);
			pthread_join(thread, &result);
			if (result != PTHREAD_CANCELED)
				puts("not cancelled");
		}
		puts("joined");
	} else if (!strcmp(how, "delay")) {
		void *pointer;

		calls(10);
		cudaMallocHost(&pointer, 4096);
		calls(10);
		cudaFreeHost(pointer);
		usleep(500000);
		calls(100);
	} else if (!strcmp(how, "handler")) {
		struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };

		signal(SIGALRM, fork_in_handler);
		setitimer(ITIMER_REAL, &timer, NULL);
		while (handled < 200 && !is_child)
			cudaStreamQuery(NULL);
		if (is_child) {
			calls(1000);
			_exit(7);
		}
		signal(SIGALRM, SIG_IGN);
		calls(10);
		printf("%d\n", wrong_children);
	} else if (!strcmp(how, "none")) {
		puts("no call");
	}
	return 0;
}
