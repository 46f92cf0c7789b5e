/*
 * cuda_plugin.c: a library that is linked with a CUDA runtime; cuda_host.c opens it.
 */
#include "cuda_prototypes.h"

cudaError_t cudaRuntimeGetVersion(int *version);

/* Allocates and frees `count` times. Returns the major version of the runtime that it reached. */
__attribute__((visibility("default"))) int plugin_run(int count);

int plugin_run(int count)
{
	char host[64] = "";
	int version;
	void *p = NULL;

	for (int i = 0; i < count; i++) {
		if (cudaMalloc(&p, sizeof(host)) ||
		    cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice) || cudaFree(p))
			return -1;
	}
	return cudaRuntimeGetVersion(&version) ? -2 : version / 1000;
}
