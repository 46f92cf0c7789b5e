/*
 * cuda_kinds.c: known numbers of all kinds of CUDA runtime calls, on the main thread and on others.
 * Links with a runtime, real or simulated. Prints what the calls answer, not where memory lies.
 *
 *   cuda_kinds [threads [passes]]   (default 3 threads beside the main one, 5 passes)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_prototypes.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub, const char *name,
			    int limit, void *tid, void *bid, void *block, void *grid, int *warp);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);

enum { BYTES = 4096 };

static char kernel_stub; /* its address names the kernel */
static unsigned failures;

#define OK(call)                                                                                   \
	do {                                                                                       \
		cudaError_t rc = call;                                                             \
                                                                                                   \
		if (rc) {                                                                          \
			printf("%s: %d\n", #call, rc);                                             \
			__atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);                        \
		}                                                                                  \
	} while (0)

#define EXPECT(condition) OK(condition ? 0 : -1)

static void nothing(void *data)
{
	(void)data;
}

/* `kind` is a default argument in C++; 16 rows of 64 bytes. */
static void copies(char *host, char *device, cudaStream_t stream)
{
	struct cudaMemcpy3DParms cube = {
		.srcPtr = { host, 64, 64, 16 },
		.dstPtr = { device, 64, 64, 16 },
		.extent = { 64, 16, 4 },
		.kind = cudaMemcpyHostToDevice,
	};

	memset(host, 'a', BYTES);
	OK(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
	memset(host, 0, BYTES);
	OK(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
	EXPECT(host[0] == 'a' && host[BYTES - 1] == 'a');
	OK(cudaMemcpy(host, host + BYTES / 2, 100, cudaMemcpyHostToHost));
	OK(cudaMemcpyAsync(device, host, BYTES / 2, cudaMemcpyHostToDevice, stream));
	OK(cudaMemcpyAsync(device + BYTES / 2, device, BYTES / 2, cudaMemcpyDeviceToDevice,
			   stream));
	OK(cudaMemcpyAsync(host, device, BYTES / 2, cudaMemcpyDefault, stream));
	OK(cudaMemcpyAsync_ptsz(host, device, 16, cudaMemcpyDeviceToHost, NULL));
	OK(cudaMemcpy2D(device, 64, host, 128, 64, 16, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2DAsync(host, 64, device, 64, 64, 16, cudaMemcpyDeviceToHost, stream));
	OK(cudaMemcpy3D(&cube));
	OK(cudaMemcpy3DAsync(&cube, stream));
	OK(cudaMemset(device, 7, BYTES));
	OK(cudaMemsetAsync(device, 8, BYTES, stream));
	OK(cudaMemset2D(device, 64, 9, 32, 8));
	OK(cudaMemset3D((struct cudaPitchedPtr){ device, 64, 64, 16 }, 10,
			(struct cudaExtent){ 64, 16, 2 }));
	OK(cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost));
	EXPECT(host[0] == 10 && host[64 * 16 * 2] == 8);
}

static void launches(cudaStream_t stream)
{
	dim3 grid = { 4, 3, 2 }, block = { 32, 2, 1 };
	cudaLaunchConfig_t config[2] = { { grid, block, 0, stream } };
	cudaKernel_t kernel;
	void *args[1] = { &kernel };

	for (int i = 0; i < 10; i++)
		OK(cudaLaunchKernel(&kernel_stub, grid, block, args, 0, i % 2 ? stream : NULL));
	OK(cudaLaunchKernel_ptsz(&kernel_stub, grid, block, args, 0, NULL));
	OK(cudaLaunchKernelExC(config, &kernel_stub, args));
	OK(__cudaGetKernel(&kernel, &kernel_stub));
	for (int i = 0; i < 3; i++)
		OK(__cudaLaunchKernel(kernel, grid, block, args, 64, stream));
	OK(cudaLaunchHostFunc(stream, nothing, NULL));
}

static void graph(cudaStream_t stream)
{
	dim3 one = { 1, 1, 1 };
	void *args[1] = { NULL };
	cudaGraph_t captured;
	cudaGraphExec_t exec;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaLaunchKernel(&kernel_stub, one, one, args, 0, stream));
	OK(cudaLaunchKernel(&kernel_stub, one, one, args, 0, stream));
	OK(cudaStreamEndCapture(stream, &captured));
	OK(cudaGraphInstantiateWithFlags(&exec, captured, 0));
	for (int i = 0; i < 4; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(captured));
}

static void memory(cudaStream_t stream)
{
	struct cudaPointerAttributes attributes[4]; /* room for what a later version appends */
	static const int types[] = { 0, 1, 2, 3 };
	struct cudaPitchedPtr cube;
	void *p, *host, *managed, *plain = aligned_alloc(4096, BYTES);
	size_t pitch;

	OK(cudaMallocAsync(&p, 512, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaMallocPitch(&p, &pitch, 100, 4));
	OK(cudaFree(p));
	OK(cudaMalloc3D(&cube, (struct cudaExtent){ 100, 4, 2 }));
	OK(cudaFree(cube.ptr));
	OK(cudaFree(NULL));
	OK(cudaMallocManaged(&managed, 8192, 1));
	OK(cudaMallocHost(&host, 8192));
	OK(cudaMalloc(&p, 4096));
	const void *pointers[] = { plain, host, p, managed };
	for (int i = 0; i < 4; i++) {
		OK(cudaPointerGetAttributes(attributes, pointers[i]));
		EXPECT((int)attributes->type == types[i]);
	}
	OK(cudaFree(p));
	OK(cudaFree(managed));
	OK(cudaFreeHost(host));
	OK(cudaHostRegister(plain, BYTES, 0));
	OK(cudaHostUnregister(plain));
	free(plain);
	EXPECT(cudaMalloc(&p, (size_t)1 << 60) == 2);
	EXPECT(cudaGetLastError() == 2);
}

static void *work(void *passes)
{
	cudaStream_t stream;
	cudaEvent_t event;
	char *host, *device;

	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaMalloc((void **)&device, BYTES));
	OK(cudaHostAlloc((void **)&host, BYTES, 0));
	for (int i = 0; i < *(int *)passes; i++) {
		launches(stream);
		copies(host, device, stream);
		graph(stream);
		memory(stream);
		OK(cudaEventRecord(event, stream));
		OK(cudaEventSynchronize(event));
		OK(cudaEventQuery(event));
		OK(cudaStreamQuery(stream));
	}
	OK(cudaDeviceSynchronize());
	OK(cudaFreeHost(host));
	OK(cudaFree(device));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 3, passes = argc > 2 ? atoi(argv[2]) : 5;
	int counts[threads + 1];
	pthread_t ids[threads + 1];
	void **handle = __cudaRegisterFatBinary(NULL);

	__cudaRegisterFunction(handle, &kernel_stub, &kernel_stub, "kernel", -1, NULL, NULL, NULL,
			       NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	for (int i = 0; i < threads; i++) {
		counts[i] = passes + i + 1;
		pthread_create(&ids[i], NULL, work, &counts[i]);
	}
	work(&passes);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%u failures\n", failures);
	return failures != 0;
}
