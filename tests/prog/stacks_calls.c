/*
 * stacks_calls.c: calls that wait, from known functions. Links with a simulated runtime, of which
 * cudaDeviceSynchronize and cudaMemcpy take long (TARE_SIM_HOST_US).
 *
 *   stacks_calls threads   on the main thread and on three others
 *   stacks_calls fork      before and in a forked child, which no device serves
 *   stacks_calls signal    in a signal handler, and around one that leaves by siglongjmp
 *   stacks_calls contexts  on stacks that are swapped in, and unmapped afterwards
 *   stacks_calls deep      below a recursion, of every depth up to 200
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cuda_prototypes.h"

#define PASSES      4
#define KEEP(place) __asm__ volatile("" : "+m"(place)) /* what comes before is no tail call */
#define FUNCTION    __attribute__((noinline)) static

static sigjmp_buf start;

FUNCTION int wait_for_device(void)
{
	int result = cudaDeviceSynchronize(); /* HERE */

	KEEP(result);
	return result;
}

FUNCTION int copy_up(char *device)
{
	static char host[64];
	int result = cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);

	KEEP(result);
	return result;
}

FUNCTION int work_of_waiter(void)
{
	int result = wait_for_device();

	KEEP(result);
	return result;
}

static void *waiter(void *unused)
{
	prctl(PR_SET_NAME, "waiter");
	for (int i = 0; i < PASSES; i++)
		work_of_waiter();
	return unused;
}

static void *copier(void *device)
{
	prctl(PR_SET_NAME, "copier");
	for (int i = 0; i < PASSES; i++)
		copy_up(device);
	return NULL;
}

static void print_state(const char *when)
{
	int fd = open("/dev/null", O_RDONLY);

	printf("%s: descriptor %d\n", when, fd);
	close(fd);
}

FUNCTION void threads(void)
{
	void *(*const starts[])(void *) = { waiter, waiter, copier };
	pthread_t ids[3];
	char *device;

	cudaMalloc((void **)&device, 4096);
	print_state("before");
	for (int i = 0; i < 3; i++)
		pthread_create(&ids[i], NULL, starts[i], device);
	for (int i = 0; i < PASSES; i++) {
		errno = 1000 + i;
		wait_for_device();
		if (errno != 1000 + i)
			printf("errno is %d\n", errno);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
	print_state("after");
}

FUNCTION int in_child(void)
{
	int result = wait_for_device();

	KEEP(result);
	return result;
}

FUNCTION void forks(void)
{
	int status;

	for (int i = 0; i < PASSES; i++)
		wait_for_device();
	fflush(stdout);
	if (!fork()) {
		for (int i = 0; i < PASSES; i++)
			in_child();
		_exit(7);
	}
	wait(&status);
	printf("child ended with %d\n", WEXITSTATUS(status));
	wait_for_device();
}

static void handler(int signal)
{
	wait_for_device();
	if (signal == SIGUSR2)
		siglongjmp(start, 1);
}

FUNCTION int be_signalled(int signal)
{
	int result = raise(signal);

	KEEP(result);
	return result;
}

FUNCTION void signals(void)
{
	static volatile int count;
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < PASSES; i++)
		be_signalled(SIGUSR1);
	if (sigsetjmp(start, 1))
		count++;
	if (count < PASSES)
		be_signalled(SIGUSR2);
	wait_for_device();
	printf("%d jumps\n", count);
}

FUNCTION int recurse(int depth)
{
	int result = depth ? recurse(depth - 1) : wait_for_device();

	KEEP(result);
	return result;
}

enum { CONTEXT_BYTES = 1 << 16 };

static ucontext_t outside;

static void on_context(void)
{
	for (int i = 0; i < PASSES; i++)
		work_of_waiter();
}

/* A way in, of its own depth, so that stacks begin at other places. */
FUNCTION void enter(ucontext_t *context, int depth)
{
	volatile char room[256 * (depth + 1)];

	room[0] = 0;
	swapcontext(&outside, context);
	room[0]++;
}

static void contexts(void)
{
	for (int i = 0; i < 20; i++) {
		void *stack = mmap(NULL, CONTEXT_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ucontext_t context;

		getcontext(&context);
		context.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = CONTEXT_BYTES };
		context.uc_link = &outside;
		makecontext(&context, on_context, 0);
		enter(&context, i % 3);
		munmap(stack, CONTEXT_BYTES);
		wait_for_device();
	}
	printf("back\n");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "threads";

	if (!strcmp(what, "fork"))
		forks();
	else if (!strcmp(what, "signal"))
		signals();
	else if (!strcmp(what, "contexts"))
		contexts();
	else if (!strcmp(what, "deep"))
		for (int depth = 0; depth <= 200; depth++)
			recurse(depth);
	else
		threads();
	return 0;
}
