/*
 * The simulated runtime from a C program, without torch: what it copies, how long it takes, what
 * blocks, what it says of pointers, what a capture does. Prints a line for each check that fails;
 * exit status 0 when none did.
 *
 * Built by test_sim.py against each version's headers and linked with that version's runtime. It is
 * to run with TARE_SIM_KERNELS=slow:20000 and TARE_SIM_QUEUE=8.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *,
			    dim3 *, dim3 *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);

static int failures;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                  \
			failures++;                                                                \
		}                                                                                  \
	} while (0)
#define OK(call) CHECK((call) == cudaSuccess)

enum { SLOW_US = 20000, QUEUE = 8 };

static const dim3 one = { 1, 1, 1 };
static char fast_stub, slow_stub, variable;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void launch(const char *stub, int count, cudaStream_t stream)
{
	while (count--)
		OK(cudaLaunchKernel(stub, one, one, NULL, 0, stream));
}

static void check_memory(void)
{
	struct cudaPointerAttributes a;
	char local[64], *device, *pinned;
	size_t free_before, free_after, total;

	OK(cudaMemGetInfo(&free_before, &total));
	OK(cudaMalloc((void **)&device, 1 << 20));
	OK(cudaMemGetInfo(&free_after, &total));
	CHECK(free_before - free_after == 1 << 20);
	OK(cudaPointerGetAttributes(&a, device + 100));
	CHECK(a.type == cudaMemoryTypeDevice && a.device == 0 && a.devicePointer == device + 100);
	OK(cudaPointerGetAttributes(&a, local));
	CHECK(a.type == cudaMemoryTypeUnregistered);
	OK(cudaHostAlloc((void **)&pinned, 4096, cudaHostAllocDefault));
	OK(cudaPointerGetAttributes(&a, pinned + 4095));
	CHECK(a.type == cudaMemoryTypeHost && a.hostPointer == pinned + 4095);
	OK(cudaPointerGetAttributes(&a, pinned + 4096));
	CHECK(a.type == cudaMemoryTypeUnregistered);

	char *own = aligned_alloc(4096, 8192);
	OK(cudaHostRegister(own, 8192, 0));
	CHECK(cudaHostRegister(own + 4096, 4096, 0) == cudaErrorHostMemoryAlreadyRegistered);
	CHECK(cudaGetLastError() == cudaErrorHostMemoryAlreadyRegistered);
	CHECK(cudaGetLastError() == cudaSuccess);
	OK(cudaPointerGetAttributes(&a, own));
	CHECK(a.type == cudaMemoryTypeHost);
	OK(cudaHostUnregister(own));
	CHECK(cudaHostUnregister(own) == cudaErrorHostMemoryNotRegistered);
	free(own);

	CHECK(cudaMalloc((void **)&own, (size_t)1 << 50) == cudaErrorMemoryAllocation);
	CHECK(cudaMemcpy(device, local, 64, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
	CHECK(cudaFree(local) == cudaErrorInvalidValue);
	OK(cudaFreeHost(pinned));
	OK(cudaFree(device));
	OK(cudaFree(NULL));
	OK(cudaMemGetInfo(&free_after, &total));
	CHECK(free_before == free_after);
	cudaGetLastError();
}

static void check_copies(void)
{
	char *device, back[64];
	int words[4] = { 0 };

	OK(cudaMalloc((void **)&device, 4096));
	OK(cudaMemcpy(device, "to the device and back", 23, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(device + 100, device, 23, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy(back, device + 100, 23, cudaMemcpyDefault));
	CHECK(!strcmp(back, "to the device and back"));
	OK(cudaMemcpy_ptds(back, device + 3, 10, cudaMemcpyDeviceToHost));
	CHECK(!memcmp(back, "the device", 10));

	OK(cudaMemset(device, 'x', 64));
	OK(cudaMemcpy2D(device, 16, "abcdefgh", 4, 2, 2, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(back, device, 20, cudaMemcpyDeviceToHost));
	CHECK(!memcmp(back, "abxxxxxxxxxxxxxxefxx", 20));

	/* A small read gives zeros where a kernel was given a pointer to it since it was written. */
	void *given = device + 512, *args[] = { &given };
	OK(cudaMemcpy(device, "1234567", 8, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(device + 512, device, 8, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy(back, device + 512, 8, cudaMemcpyDeviceToHost));
	CHECK(!strcmp(back, "1234567"));
	OK(cudaLaunchKernel(&fast_stub, one, one, args, 0, NULL));
	OK(cudaMemcpy(back, device + 512, 8, cudaMemcpyDeviceToHost));
	CHECK(!*back);
	OK(cudaMemcpy(back, device, 8, cudaMemcpyDeviceToHost));
	CHECK(!strcmp(back, "1234567"));
	*back = 0;
	OK(cudaMemcpy(back, device + 512, 16, cudaMemcpyDeviceToHost));
	CHECK(!strcmp(back, "1234567"));

	char *large;
	OK(cudaMalloc((void **)&large, 8 << 20));
	OK(cudaMemset(large, 7, 8 << 20));
	OK(cudaMemset(large + 100, 0, (8 << 20) - 200));
	OK(cudaMemcpy(back, large + 99, 2, cudaMemcpyDeviceToHost));
	CHECK(back[0] == 7 && back[1] == 0);
	OK(cudaMemcpy(back, large + (8 << 20) - 101, 2, cudaMemcpyDeviceToHost));
	CHECK(back[0] == 0 && back[1] == 7);

	OK(cudaMemcpyToSymbol(&variable, "\1\0\0\0\2", 5, 4, cudaMemcpyHostToDevice));
	OK(cudaMemcpyFromSymbol(words, &variable, 16, 0, cudaMemcpyDeviceToHost));
	CHECK(words[1] == 1 && words[2] == 2);
	CHECK(cudaMemcpyToSymbol(&variable, back, 16, 4, cudaMemcpyHostToDevice) ==
	      cudaErrorInvalidSymbol);
	cudaGetLastError();
	OK(cudaFree(large));
	OK(cudaFree(device));
}

static void check_time(void)
{
	cudaStream_t stream, other;
	cudaEvent_t begin, end;
	cudaKernel_t kernel;
	char *device, pageable[64], *pinned;
	float ms = 0;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	OK(cudaEventCreate(&begin));
	OK(cudaEventCreate(&end));
	OK(cudaMalloc((void **)&device, 4096));
	OK(cudaMallocHost((void **)&pinned, 4096));

	/* Launches and events do not wait, a synchronise does. */
	double start = now_us();
	OK(cudaEventRecord(begin, stream));
	launch(&slow_stub, 3, stream);
	OK(__cudaGetKernel(&kernel, &slow_stub));
	CHECK((const void *)kernel != &slow_stub);
	OK(__cudaLaunchKernel(kernel, one, one, NULL, 0, stream));
	OK(cudaEventRecord(end, stream));
	CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
	CHECK(cudaEventQuery(end) == cudaErrorNotReady);
	CHECK(cudaEventElapsedTime(&ms, begin, end) == cudaErrorNotReady);
	CHECK(now_us() - start < 4 * SLOW_US);
	OK(cudaStreamSynchronize(stream));
	CHECK(now_us() - start >= 4 * SLOW_US);
	OK(cudaStreamQuery(stream));
	OK(cudaEventElapsedTime(&ms, begin, end));
	CHECK(ms >= 4 * SLOW_US / 1e3f && ms < 4.5f * SLOW_US / 1e3f);

	/* Another stream is free, unless it waits for an event of the first. */
	launch(&slow_stub, 1, stream);
	OK(cudaEventRecord(end, stream));
	OK(cudaStreamQuery(other));
	OK(cudaStreamWaitEvent(other, end, 0));
	launch(&fast_stub, 1, other);
	CHECK(cudaStreamQuery(other) == cudaErrorNotReady);
	OK(cudaEventSynchronize(end));

	/* Copies: from pinned memory they do not wait; to pageable memory they do. */
	launch(&slow_stub, 1, stream);
	OK(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream));
	OK(cudaMemcpyAsync(pinned, device, 64, cudaMemcpyDeviceToHost, stream));
	OK(cudaMemcpyAsync(device, pageable, 64, cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
	OK(cudaMemcpyAsync(pageable, device, 64, cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamQuery(stream));

	/* The NULL stream waits for blocking streams, and so does what waits for it. */
	OK(cudaStreamDestroy(other));
	OK(cudaStreamCreate(&other));
	launch(&slow_stub, 1, other);
	launch(&fast_stub, 1, NULL);
	CHECK(cudaStreamQuery(NULL) == cudaErrorNotReady);
	OK(cudaMemcpy(device, pageable, 64, cudaMemcpyHostToDevice));
	OK(cudaStreamQuery(other));
	launch(&slow_stub, 1, stream);
	CHECK(cudaStreamQuery(NULL) == cudaSuccess);
	OK(cudaStreamSynchronize_ptsz(NULL));
	CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);

	/* cudaFree waits for the device. */
	OK(cudaFree(device));
	OK(cudaStreamQuery(stream));

	/* A full queue blocks the launch. */
	start = now_us();
	launch(&slow_stub, QUEUE + 4, stream);
	double blocked = now_us() - start;
	CHECK(blocked >= 3 * SLOW_US && blocked < (QUEUE + 4) * SLOW_US);
	OK(cudaDeviceSynchronize());
	CHECK(now_us() - start >= (QUEUE + 4) * SLOW_US);

	OK(cudaFreeHost(pinned));
	OK(cudaEventDestroy(begin));
	OK(cudaEventDestroy(end));
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamDestroy(other));
	cudaGetLastError();
}

static void append(void *text)
{
	strcat(text, "h");
}

static void check_host_functions(void)
{
	static char text[16];
	cudaStream_t stream;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	launch(&slow_stub, 1, stream);
	OK(cudaLaunchHostFunc(stream, append, text));
	OK(cudaLaunchHostFunc(stream, append, text));
	CHECK(!*text);
	OK(cudaStreamSynchronize(stream));
	CHECK(!strcmp(text, "hh"));
	OK(cudaStreamDestroy(stream));
}

static int destroyed;

static void destroy(void *object)
{
	(void)object;
	destroyed++;
}

static void check_graphs(void)
{
	enum cudaStreamCaptureStatus status;
	cudaStream_t stream, side;
	cudaEvent_t fork, join, begin, end;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaUserObject_t object;
	char *device, back[16] = "";
	size_t nodes = 0;
	float ms = 0;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	OK(cudaEventCreate(&begin));
	OK(cudaEventCreate(&end));
	OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	OK(cudaMalloc((void **)&device, 4096));

	CHECK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal) ==
	      cudaErrorStreamCaptureUnsupported);
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaStreamIsCapturing(stream, &status));
	CHECK(status == cudaStreamCaptureStatusActive);
	launch(&slow_stub, 2, stream);
	OK(cudaEventRecord(fork, stream));
	OK(cudaStreamWaitEvent(side, fork, 0));
	OK(cudaStreamIsCapturing(side, &status));
	CHECK(status == cudaStreamCaptureStatusActive);
	launch(&slow_stub, 1, side);
	OK(cudaMemsetAsync(device, 'g', 3, side));
	launch(&slow_stub, 1, stream);
	OK(cudaEventRecord(join, side));
	OK(cudaStreamWaitEvent(stream, join, 0));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaStreamIsCapturing(side, &status));
	CHECK(status == cudaStreamCaptureStatusNone);
	OK(cudaStreamQuery(stream));
	OK(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 5);
	OK(cudaMemcpy(back, device, 16, cudaMemcpyDeviceToHost));
	CHECK(!*back);

	OK(cudaUserObjectCreate(&object, &nodes, destroy, 1, cudaUserObjectNoDestructorSync));
	OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	CHECK(!destroyed);

	/* The two branches overlap: three kernels long, not four. */
	OK(cudaEventRecord(begin, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaEventRecord(end, stream));
	CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventElapsedTime(&ms, begin, end));
	CHECK(ms >= 3 * SLOW_US / 1e3f && ms < 3.5f * SLOW_US / 1e3f);
	OK(cudaMemcpy(back, device, 16, cudaMemcpyDeviceToHost));
	CHECK(!strcmp(back, "ggg"));
	OK(cudaGraphExecDestroy(exec));
	CHECK(destroyed == 1);

	/* What waits breaks a capture. */
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMalloc((void **)&graph, 16) == cudaErrorStreamCaptureUnsupported);
	CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	char *more;
	OK(cudaMalloc((void **)&more, 16));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
	CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);

	OK(cudaFree(more));
	OK(cudaFree(device));
	OK(cudaEventDestroy(begin));
	OK(cudaEventDestroy(end));
	OK(cudaEventDestroy(fork));
	OK(cudaEventDestroy(join));
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamDestroy(side));
	cudaGetLastError();
}

/* A child of a process that used CUDA may not: each call says so, none hangs. */
static void check_fork(void)
{
	int status, count;
	pid_t child = fork();

	if (!child)
		_exit(cudaGetDeviceCount(&count) == cudaErrorInitializationError ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && !status);
}

int main(void)
{
	struct cudaDeviceProp properties;
	void **handle = __cudaRegisterFatBinary(NULL);
	int count = 0, version = 0;

	__cudaRegisterFunction(handle, &fast_stub, NULL, "_Z4fastv", -1, 0, 0, 0, 0, 0);
	__cudaRegisterFunction(handle, &slow_stub, NULL, "_Z4slowv", -1, 0, 0, 0, 0, 0);
	__cudaRegisterVar(handle, &variable, NULL, "variable", 0, 16, 0, 0);

	OK(cudaGetDeviceCount(&count));
	CHECK(count == 1);
	OK(cudaRuntimeGetVersion(&version));
	CHECK(version == CUDART_VERSION);
	OK(cudaGetDeviceProperties(&properties, 0));
	CHECK(properties.warpSize == 32 && properties.multiProcessorCount > 0);
	CHECK(!strcmp(properties.name, "Simulated GPU"));
	CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
	CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
	CHECK(!strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidDevice"));
	CHECK(cudaLaunchKernel(&count, one, one, NULL, 0, NULL) == cudaErrorInvalidDeviceFunction);
	CHECK(cudaLaunchKernel(&fast_stub, one, (dim3){ 2000, 1, 1 }, NULL, 0, NULL) ==
	      cudaErrorInvalidConfiguration);
	cudaGetLastError();

	check_memory();
	check_copies();
	check_time();
	check_host_functions();
	check_graphs();
	CHECK(cudaDeviceFlushGPUDirectRDMAWrites(0, 0) == cudaErrorNotSupported);
	CHECK(cudaDeviceFlushGPUDirectRDMAWrites(0, 0) == cudaErrorNotSupported);
	check_fork();
	return failures != 0;
}
