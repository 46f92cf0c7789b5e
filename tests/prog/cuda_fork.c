/*
 * cuda_fork.c: CUDA calls before a fork and after it, in parent and child. For a runtime that
 * allows it (cuda_fake.c).
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_prototypes.h"

static void calls(int count)
{
	for (int i = 0; i < count; i++) {
		cudaDeviceSynchronize();
		cudaStreamSynchronize(NULL);
	}
}

int main(void)
{
	int status;

	cudaSetDevice(1);
	calls(3);
	pid_t child = fork();
	if (!child) {
		calls(5);
		_exit(7);
	}
	calls(4);
	if (waitpid(child, &status, 0) != child)
		return 1;
	printf("child %d\n", WEXITSTATUS(status));
	return 0;
}
