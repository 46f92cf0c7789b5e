/*
 * Devices, their properties, what they make of a kernel, and versions.
 */
#include <stdio.h>
#include <string.h>
#include "figures.h"
#include "cudart.h"

static int cc_major(void)
{
	return (int)sim_config()->cc;
}

static int cc_minor(void)
{
	return (int)(sim_config()->cc * 10 + 0.5) % 10;
}

static bool is_device(int device)
{
	return device >= 0 && device < sim_config()->device_count;
}

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	ENTER(cudaGetDeviceCount);
	*count = sim_config()->device_count;
	return result(*count ? cudaSuccess : cudaErrorNoDevice);
}

EXPORT cudaError_t cudaGetDevice(int *device)
{
	ENTER(cudaGetDevice);
	*device = sim_device();
	return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int device)
{
	ENTER(cudaSetDevice);
	return result(sim_device_set(device));
}

EXPORT cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
	(void)device_flags;
	(void)flags;
	ENTER(cudaInitDevice);
	return result(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	(void)flags;
	ENTER(cudaSetDeviceFlags);
	return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	ENTER(cudaGetDeviceFlags);
	*flags = cudaDeviceMapHost;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	ENTER(cudaDeviceSynchronize);
	return result(sim_device_synchronize());
}

EXPORT cudaError_t cudaDeviceReset(void)
{
	ENTER(cudaDeviceReset);
	return result(sim_device_reset());
}

#if SIM_CUDA == 12
EXPORT cudaError_t cudaThreadSynchronize(void)
{
	ENTER(cudaThreadSynchronize);
	return result(sim_device_synchronize());
}

EXPORT cudaError_t cudaThreadExit(void)
{
	ENTER(cudaThreadExit);
	return result(sim_device_reset());
}
#endif

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	size_t unused;

	ENTER(cudaGetDeviceProperties);
	if (!is_device(device))
		return result(cudaErrorInvalidDevice);
	*p = (struct cudaDeviceProp)
	{
		.sharedMemPerBlock = SIM_SHARED, .regsPerBlock = SIM_REGISTERS,
		.warpSize = SIM_WARP, .memPitch = SIM_GRID_X,
		.maxThreadsPerBlock = SIM_BLOCK_THREADS,
		.maxThreadsDim = { SIM_BLOCK_THREADS, SIM_BLOCK_THREADS, SIM_BLOCK_Z },
		.maxGridSize = { SIM_GRID_X, SIM_GRID_YZ, SIM_GRID_YZ },
		.totalConstMem = SIM_CONSTANT, .major = cc_major(), .minor = cc_minor(),
		.textureAlignment = SIM_TEXTURE_ALIGNMENT, .texturePitchAlignment = 32,
		.multiProcessorCount = SIM_SM_COUNT, .canMapHostMemory = 1, .concurrentKernels = 1,
		.ECCEnabled = 1, .pciBusID = device + 1, .asyncEngineCount = SIM_ENGINES,
		.unifiedAddressing = 1, .memoryBusWidth = SIM_BUS_WIDTH, .l2CacheSize = SIM_L2,
		.maxThreadsPerMultiProcessor = SIM_SM_THREADS, .streamPrioritiesSupported = 1,
		.globalL1CacheSupported = 1, .localL1CacheSupported = 1,
		.sharedMemPerMultiprocessor = SIM_SHARED_SM, .regsPerMultiprocessor = SIM_REGISTERS,
		.managedMemory = 1, .concurrentManagedAccess = 1, .computePreemptionSupported = 1,
		.canUseHostPointerForRegisteredMem = 1, .cooperativeLaunch = 1,
		.sharedMemPerBlockOptin = SIM_SHARED_OPTIN,
		.maxBlocksPerMultiProcessor = SIM_SM_BLOCKS,
		.reservedSharedMemPerBlock = SIM_SHARED_RESERVED, .hostRegisterSupported = 1,
		.memoryPoolsSupported = 1, .clusterLaunch = cc_major() >= 9,
#if SIM_CUDA == 12
		.clockRate = SIM_CLOCK_KHZ, .memoryClockRate = SIM_MEMORY_CLOCK_KHZ,
		.deviceOverlap = 1, .singleToDoublePrecisionPerfRatio = 2,
#endif
	};
	sim_memory_info(&unused, &p->totalGlobalMem);
	strcpy(p->name, SIM_NAME);
	memcpy(p->uuid.bytes, SIM_UUID, sizeof(p->uuid.bytes));
	p->uuid.bytes[15] = (char)device;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	ENTER(cudaDeviceGetAttribute);
	return result(sim_attribute((int)attr, device, value));
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
	ENTER(cudaDeviceGetPCIBusId);
	if (!is_device(device))
		return result(cudaErrorInvalidDevice);
	snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned)(device + 1) & 0xff);
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER(cudaDeviceGetStreamPriorityRange);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	ENTER(cudaDeviceGetLimit);
	*value = limit == cudaLimitStackSize ? 1024 : 8 << 20;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	(void)limit;
	(void)value;
	ENTER(cudaDeviceSetLimit);
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	ENTER(cudaDeviceCanAccessPeer);
	*can = is_device(device) && is_device(peer) && device != peer;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	(void)flags;
	ENTER(cudaDeviceEnablePeerAccess);
	return result(is_device(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	ENTER(cudaDeviceDisablePeerAccess);
	return result(is_device(peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
	ENTER(cudaDriverGetVersion);
	*version = SIM_CUDA * 1000;
	return cudaSuccess;
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
	ENTER(cudaRuntimeGetVersion);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

EXPORT cudaError_t cudaProfilerStart(void)
{
	ENTER(cudaProfilerStart);
	return cudaSuccess;
}

EXPORT cudaError_t cudaProfilerStop(void)
{
	ENTER(cudaProfilerStop);
	return cudaSuccess;
}

/* ---- functions as the device sees them ---- */

EXPORT cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
	ENTER(cudaFuncGetAttributes);
	if (!kernel_find(func))
		return result(cudaErrorInvalidDeviceFunction);
	*attributes = (struct cudaFuncAttributes){
		.maxThreadsPerBlock = SIM_BLOCK_THREADS,
		.numRegs = 32,
		.ptxVersion = cc_major() * 10 + cc_minor(),
		.binaryVersion = cc_major() * 10 + cc_minor(),
		.maxDynamicSharedSizeBytes = SIM_SHARED,
		.preferredShmemCarveout = -1,
	};
	return cudaSuccess;
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	(void)attr;
	(void)value;
	ENTER(cudaFuncSetAttribute);
	return result(kernel_find(func) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	(void)config;
	ENTER(cudaFuncSetCacheConfig);
	return result(kernel_find(func) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
								 int block_size, size_t shared)
{
	(void)func;
	ENTER(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
	*blocks = sim_blocks_per_sm(block_size, shared);
	return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, const void *func, int block_size, size_t shared, unsigned int flags)
{
	(void)func;
	(void)flags;
	ENTER(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
	*blocks = sim_blocks_per_sm(block_size, shared);
	return cudaSuccess;
}

EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *func,
						  const cudaLaunchConfig_t *config)
{
	(void)func;
	(void)config;
	ENTER(cudaOccupancyMaxActiveClusters);
	*clusters = SIM_SM_COUNT / 2;
	return cudaSuccess;
}
