/*
 * cuda_errors.c: wrong calls of the CUDA runtime. Prints what they answer, what the runtime
 * remembers of it, and whether errno is untouched.
 */
#include <errno.h>
#include <stdio.h>

#include "cuda_prototypes.h"

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetDevice(int *device);

static void report(const char *call, cudaError_t answer)
{
	int saved_errno = errno;
	cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError();

	printf("%s: %d, last error %d %d then %d, errno %d\n", call, answer, peeked, last,
	       cudaGetLastError(), saved_errno);
	errno = 0;
}

#define REPORT(call)                                                                               \
	do {                                                                                       \
		errno = 33;                                                                        \
		report(#call, call);                                                               \
	} while (0)

int main(void)
{
	dim3 none = { 0, 0, 0 }, one = { 1, 1, 1 };
	char host[16] = "";
	int device = -1;
	void *p = NULL;
	cudaGraph_t graph;

	for (int turn = 0; turn < 2; turn++) {
		REPORT(cudaSetDevice(99));
		REPORT(cudaGetDevice(&device));
		REPORT(cudaMalloc(&p, (size_t)1 << 60));
		REPORT(cudaFree(host));
		REPORT(cudaFreeHost(host));
		REPORT(cudaHostUnregister(host));
		REPORT(cudaLaunchKernel(host, one, one, NULL, 0, NULL));
		REPORT(cudaLaunchKernel(NULL, none, none, NULL, 0, NULL));
		REPORT(cudaMemcpy(host, host, 16, (enum cudaMemcpyKind)9));
		REPORT(cudaStreamEndCapture(NULL, &graph));
		REPORT(cudaDeviceSynchronize());
		REPORT(cudaMalloc(&p, 64));
		REPORT(cudaFree(p));
	}
	return 0;
}
