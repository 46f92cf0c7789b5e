/*
 * fidelity_calls.c: a program without Python that makes CUDA calls, in ways that are hard on a library
 * that stands in between: CASE [PLUGIN]. Prints what happened, which must not depend on being traced.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaStreamQuery(void *stream);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaFreeHost(void *pointer);

static const char *plugin_path;

static void *calls(void *count)
{
	for (intptr_t i = 0; i < (intptr_t)count; i++)
		cudaStreamQuery(NULL);
	return NULL;
}

/* Some blocks full in two threads, and a child. */
static int blocks(void)
{
	pthread_t thread;
	int status;

	calls((void *)20000);
	pthread_create(&thread, NULL, calls, (void *)20000);
	pthread_join(thread, NULL);
	/* One thread more than there are places so far. */
	pthread_create(&thread, NULL, calls, (void *)100);
	calls((void *)100);
	pthread_join(thread, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		calls((void *)100);
		exit(7);
	}
	waitpid(pid, &status, 0);
	errno = 33;
	calls((void *)1);
	printf("%d %d\n", WEXITSTATUS(status), errno);
	return 3;
}

static volatile sig_atomic_t handled;
static sigjmp_buf back;
static int null_fd;

static void handler(int number)
{
	(void)number;
	handled++;
	cudaStreamQuery(NULL);
	if (write(null_fd, "x", 1) != 1)
		_exit(1);
}

static void jumping_handler(int number)
{
	(void)number;
	handled++;
	siglongjmp(back, 1);
}

static void at_1_khz(void (*handle)(int))
{
	const struct itimerval interval = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };

	null_fd = open("/dev/null", O_WRONLY);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
}

static int signals(void)
{
	at_1_khz(handler);
	while (handled < 200)
		calls((void *)100);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	puts("handled");
	return 0;
}

/* Out of a handler, and so out of whatever it came upon, our own code too. */
static int jumps(void)
{
	at_1_khz(jumping_handler);
	sigsetjmp(back, 1);
	while (handled < 100)
		calls((void *)100);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	calls((void *)1000);
	puts("jumped");
	return 0;
}

static void *for_ever(void *unused)
{
	(void)unused;
	for (;;)
		cudaStreamQuery(NULL);
	return NULL;
}

/* main returns while others are in calls, and while they begin. */
static int exits(void)
{
	pthread_t thread;

	for (int i = 0; i < 8; i++)
		pthread_create(&thread, NULL, for_ever, NULL);
	calls((void *)1000);
	return 5;
}

static void at_exit(void)
{
	calls((void *)10);
	pid_t pid = fork();
	if (pid == 0) {
		calls((void *)10);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	puts("at exit");
	fflush(stdout);
}

static int exit_handlers(void)
{
	calls((void *)10);
	atexit(at_exit);
	return 6;
}

static void *outlives(void *main_thread)
{
	pthread_join((pthread_t)main_thread, NULL);
	calls((void *)1000);
	puts("alone");
	return NULL;
}

/* The process goes on without its first thread. */
static int main_ends(void)
{
	pthread_t thread;

	calls((void *)1000);
	pthread_create(&thread, NULL, outlives, (void *)pthread_self());
	pthread_exit(NULL);
}

static void overflowed(int number)
{
	(void)number;
	if (write(1, "overflow\n", 9) == 9)
		_exit(9);
}

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static int recurse(int depth)
{
	volatile char room[512];

	memset((char *)room, depth, sizeof(room));
	cudaStreamQuery(NULL);
	return recurse(depth + 1) + room[depth % 512];
}

/* Into its guard page, with a handler on a stack of its own. */
static int stack_overflow(void)
{
	struct sigaction action = { .sa_handler = overflowed, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	return recurse(0);
}

static int plugin(int mode)
{
	void *handle = dlopen(plugin_path, RTLD_NOW | mode);
	int (*run)(int) = handle ? (int (*)(int))dlsym(handle, "plugin_run") : NULL;

	if (!run) {
		puts(dlerror());
		return 1;
	}
	printf("%d", run(20));
	printf(" %d\n", dlclose(handle));
	calls((void *)100);
	return 0;
}

/* Opened and closed again and again: what was recorded of it goes. */
static int closes(void)
{
	for (int i = 0; i < 20; i++) {
		if (plugin(RTLD_LOCAL))
			return 1;
	}
	printf("%p\n", dlopen("/nonexistent.so", RTLD_NOW));
	struct stat status;
	int error = stat("/", &status);
	printf("%d %s\n", error, dlopen("/nonexistent.so", RTLD_NOW) ? "" : dlerror());
	return 0;
}

static int deepbind(void)
{
	return plugin(RTLD_DEEPBIND);
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "blocks", blocks },
	{ "signals", signals },
	{ "jumps", jumps },
	{ "exits", exits },
	{ "exit_handlers", exit_handlers },
	{ "main_ends", main_ends },
	{ "stack_overflow", stack_overflow },
	{ "closes", closes },
	{ "deepbind", deepbind },
};

int main(int argc, char **argv)
{
	plugin_path = argc > 2 ? argv[2] : NULL;
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]) == 0)
			return cases[i].run();
	}
	return 99;
}
