/*
 * cuda_types.h: the CUDA runtime's types, as far as cuda_hooks.def needs them.
 *
 * For cuda_runtime.c alone, which is built without CUDA headers. Layouts are those of runtime 11, 12
 * and 13; tests/test_cuda_table.py compares them and every prototype with NVIDIA's headers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int cudaError_t;
#define cudaSuccess           0
#define cudaErrorNotSupported 801

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef void (*cudaHostFn_t)(void *);

struct cudaChannelFormatDesc;
struct cudaMemcpyAttributes;
struct cudaMemcpy3DBatchOp;

enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault,
};

enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal };
enum cudaMemoryType { cudaMemoryTypeUnregistered };

typedef struct {
	unsigned x, y, z;
} dim3;

struct cudaPos {
	size_t x, y, z;
};

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct cudaMemcpy3DParms {
	cudaArray_t srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	cudaArray_t dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
	cudaArray_t srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	int srcDevice;
	cudaArray_t dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	int dstDevice;
	struct cudaExtent extent;
};

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer, *hostPointer;
};

typedef struct {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
} cudaLaunchConfig_t;

struct cudaLaunchParams {
	void *func;
	dim3 gridDim, blockDim;
	void **args;
	size_t sharedMem;
	cudaStream_t stream;
};

static inline size_t extent_bytes(struct cudaExtent extent)
{
	return extent.width * extent.height * extent.depth;
}

/* Extents that an array takes part in count elements, whose size the arguments do not tell. */
#define copy_3d_bytes(p) ((p) && !(p)->srcArray && !(p)->dstArray ? extent_bytes((p)->extent) : 0)

static inline size_t sum_bytes(const size_t *sizes, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; sizes && i < count; i++)
		sum += sizes[i];
	return sum;
}
