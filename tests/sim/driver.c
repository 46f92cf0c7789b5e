/*
 * libcuda.so.1, as far as torch looks into it by itself and Triton launches through it. A module is
 * whatever was loaded, a function any name asked for; a launch is a kernel like the runtime's.
 *
 * An exported function never calls another one: a tracer would see a call that no program made.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "figures.h"
#include "sim.h"

#define EXPORT __attribute__((visibility("default")))

enum {
#define FN(name) FN_##name,
#include "driver_names.def"
#undef FN
	FN_COUNT
};

extern struct sim_library driver_library;

struct CUfunc_st {
	char *name;
	uint64_t ns;
};

#define ENTER(name) ENTER_(name)
#define ENTER_(name)                                                                               \
	__attribute__((cleanup(sim_leave))) struct sim_scope enter_scope;                          \
	do {                                                                                       \
		int enter_rc = sim_enter(&enter_scope, &driver_library, FN_##name, SIM_PLAIN, 0);  \
		if (enter_rc)                                                                      \
			return (CUresult)enter_rc;                                                 \
	} while (0)

static char contexts[64], module;

EXPORT CUresult cuInit(unsigned int flags)
{
	(void)flags;
	ENTER(cuInit);
	return sim_config()->device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
	ENTER(cuDriverGetVersion);
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
	ENTER(cuDeviceGetCount);
	*count = sim_config()->device_count;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet);
	if (ordinal < 0 || ordinal >= sim_config()->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	(void)device;
	ENTER(cuDeviceGetName);
	snprintf(name, (size_t)length, "%s", SIM_NAME);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	size_t free;

	(void)device;
	ENTER(cuDeviceTotalMem);
	sim_memory_info(&free, bytes);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	ENTER(cuDeviceGetAttribute);
	return (CUresult)sim_attribute((int)attribute, device, value);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	(void)device;
	ENTER(cuDevicePrimaryCtxGetState);
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain);
	*context = (CUcontext)(void *)&contexts[device & 63];
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	(void)device;
	ENTER(cuDevicePrimaryCtxRelease);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	ENTER(cuCtxGetCurrent);
	*context = (CUcontext)(void *)&contexts[sim_device() & 63];
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	ENTER(cuCtxSetCurrent);
	return context ? (CUresult)sim_device_set((int)((char *)context - contexts)) : CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	ENTER(cuCtxGetDevice);
	*device = sim_device();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	ENTER(cuCtxSynchronize);
	return (CUresult)sim_device_synchronize();
}

EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	(void)limit;
	ENTER(cuCtxGetLimit);
	*value = 8 << 20;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	(void)limit;
	(void)value;
	ENTER(cuCtxSetLimit);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
	ENTER(cuStreamSynchronize);
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);
	return s ? (CUresult)sim_stream_synchronize(s) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult text(CUresult error, const char *success, const char **out)
{
	*out = error == CUDA_SUCCESS ? success : "CUDA driver error";
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
	ENTER(cuGetErrorString);
	return text(error, "no error", out);
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
	ENTER(cuGetErrorName);
	return text(error, "CUDA_SUCCESS", out);
}

/* By base name, as the real one: the _v2 of a name, if there is one, is the current form of it. */
EXPORT CUresult cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags,
				 CUdriverProcAddressQueryResult *status)
{
	char current[128];
	void *self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	(void)version;
	(void)flags;
	ENTER(cuGetProcAddress);
	snprintf(current, sizeof(current), "%s_v2", symbol);
	*out = self ? dlsym(self, current) : NULL;
	if (self && !*out)
		*out = dlsym(self, symbol);
	if (self)
		dlclose(self);
	if (status)
		*status = *out ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- modules and functions ---- */

EXPORT CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	(void)path;
	ENTER(cuModuleLoad);
	*out = (CUmodule)(void *)&module;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	(void)image;
	ENTER(cuModuleLoadData);
	*out = (CUmodule)(void *)&module;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count,
				   CUjit_option *options, void **values)
{
	(void)image;
	(void)count;
	(void)options;
	(void)values;
	ENTER(cuModuleLoadDataEx);
	*out = (CUmodule)(void *)&module;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule loaded)
{
	(void)loaded;
	ENTER(cuModuleUnload);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule loaded, const char *name)
{
	struct CUfunc_st *f;

	(void)loaded;
	ENTER(cuModuleGetFunction);
	f = malloc(sizeof(*f));
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*f = (struct CUfunc_st){ .name = strdup(name), .ns = sim_kernel_ns(name) };
	*out = f;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
	(void)f;
	ENTER(cuFuncGetAttribute);
	*value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? SIM_BLOCK_THREADS :
		 attribute == CU_FUNC_ATTRIBUTE_NUM_REGS              ? SIM_WARP :
									0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
	(void)f;
	(void)attribute;
	(void)value;
	ENTER(cuFuncSetAttribute);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
	(void)f;
	(void)config;
	ENTER(cuFuncSetCacheConfig);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction f, int threads,
							    size_t shared)
{
	(void)f;
	ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	*blocks = sim_blocks_per_sm(threads, shared);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction f,
					     const CUlaunchConfig *config)
{
	(void)f;
	(void)config;
	ENTER(cuOccupancyMaxActiveClusters);
	*clusters = SIM_SM_COUNT / 2;
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, CUstream stream, void **params)
{
	struct sim_touched touched;
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);

	if (!f || !s)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_touched_by(params, SIM_OUTPUT_UNKNOWN, &touched);
	touched.everything |= !params; /* they may be in `extra` */
	return (CUresult)sim_launch(s, f->name, f->ns, &touched);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			       unsigned int bx, unsigned int by, unsigned int bz,
			       unsigned int shared, CUstream stream, void **params, void **extra)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)extra;
	ENTER(cuLaunchKernel);
	return launch(f, stream, params);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy,
					  unsigned int gz, unsigned int bx, unsigned int by,
					  unsigned int bz, unsigned int shared, CUstream stream,
					  void **params)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared;
	ENTER(cuLaunchCooperativeKernel);
	return launch(f, stream, params);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
				 void **extra)
{
	(void)extra;
	ENTER(cuLaunchKernelEx);
	return launch(f, config->hStream, params);
}

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr p)
{
	struct sim_region r;

	ENTER(cuPointerGetAttribute);
	if (!sim_region_find((void *)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = r.type == SIM_MEM_HOST ? CU_MEMORYTYPE_HOST :
							     CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = p; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = r.device; return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

EXPORT CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	struct sim_region r;

	ENTER(cuMemGetAddressRange);
	if (!sim_region_find((void *)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	if (base)
		*base = r.base;
	if (size)
		*size = r.size;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	struct sim_set set = {
		.dst = (char *)dst,
		.width = count * 4,
		.height = 1,
		.depth = 1,
		.value = value,
		.size = 4,
	};

	ENTER(cuMemsetD32Async);
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);
	return s ? (CUresult)sim_set(s, &set) : CUDA_ERROR_INVALID_HANDLE;
}
