/*
 * Device attributes by number: cudaDeviceAttr and CUdevice_attribute share the numbering.
 */
#include "core.h"
#include "figures.h"

static const int attributes[] = {
	[1] = SIM_BLOCK_THREADS,      /* MaxThreadsPerBlock */
	[2] = SIM_BLOCK_THREADS,      /* MaxBlockDimX */
	[3] = SIM_BLOCK_THREADS,      /* MaxBlockDimY */
	[4] = SIM_BLOCK_Z,            /* MaxBlockDimZ */
	[5] = SIM_GRID_X,             /* MaxGridDimX */
	[6] = SIM_GRID_YZ,            /* MaxGridDimY */
	[7] = SIM_GRID_YZ,            /* MaxGridDimZ */
	[8] = SIM_SHARED,             /* MaxSharedMemoryPerBlock */
	[9] = SIM_CONSTANT,           /* TotalConstantMemory */
	[10] = SIM_WARP,              /* WarpSize */
	[11] = SIM_GRID_X,            /* MaxPitch */
	[12] = SIM_REGISTERS,         /* MaxRegistersPerBlock */
	[13] = SIM_CLOCK_KHZ,         /* ClockRate */
	[14] = SIM_TEXTURE_ALIGNMENT, /* TextureAlignment */
	[15] = 1,                     /* GpuOverlap */
	[16] = SIM_SM_COUNT,          /* MultiProcessorCount */
	[19] = 1,                     /* CanMapHostMemory */
	[31] = 1,                     /* ConcurrentKernels */
	[32] = 1,                     /* EccEnabled */
	[36] = SIM_MEMORY_CLOCK_KHZ,  /* MemoryClockRate */
	[37] = SIM_BUS_WIDTH,         /* GlobalMemoryBusWidth */
	[38] = SIM_L2,                /* L2CacheSize */
	[39] = SIM_SM_THREADS,        /* MaxThreadsPerMultiProcessor */
	[40] = SIM_ENGINES,           /* AsyncEngineCount */
	[41] = 1,                     /* UnifiedAddressing */
	[78] = 1,                     /* StreamPrioritiesSupported */
	[79] = 1,                     /* GlobalL1CacheSupported */
	[80] = 1,                     /* LocalL1CacheSupported */
	[81] = SIM_SHARED_SM,         /* MaxSharedMemoryPerMultiprocessor */
	[82] = SIM_REGISTERS,         /* MaxRegistersPerMultiprocessor */
	[83] = 1,                     /* ManagedMemory */
	[89] = 1,                     /* ConcurrentManagedAccess */
	[90] = 1,                     /* ComputePreemptionSupported */
	[91] = 1,                     /* CanUseHostPointerForRegisteredMem */
	[95] = 1,                     /* CooperativeLaunch */
	[97] = SIM_SHARED_OPTIN,      /* MaxSharedMemoryPerBlockOptin */
	[99] = 1,                     /* HostRegisterSupported */
	[106] = SIM_SM_BLOCKS,        /* MaxBlocksPerMultiprocessor */
	[111] = SIM_SHARED_RESERVED,  /* ReservedSharedMemoryPerBlock */
	[115] = 1,                    /* MemoryPoolsSupported */
};

enum { PCI_BUS_ID = 33, CC_MAJOR = 75, CC_MINOR = 76, CLUSTER_LAUNCH = 120 };

int sim_attribute(int attribute, int device, int *value)
{
	int cc = (int)(sim_config()->cc * 10 + 0.5);

	if (device < 0 || device >= sim_config()->device_count)
		return SIM_INVALID_DEVICE;
	switch (attribute) {
	case PCI_BUS_ID: *value = device + 1; break;
	case CC_MAJOR: *value = cc / 10; break;
	case CC_MINOR: *value = cc % 10; break;
	case CLUSTER_LAUNCH: *value = cc >= 90; break;
	default:
		*value = attribute > 0 && (size_t)attribute < sizeof(attributes) / sizeof(int) ?
				 attributes[attribute] :
				 0;
	}
	return SIM_OK;
}

int sim_blocks_per_sm(int threads, size_t shared)
{
	int blocks = SIM_SM_BLOCKS;

	if (threads < 1 || threads > SIM_BLOCK_THREADS)
		return 0;
	if (blocks > SIM_SM_THREADS / threads)
		blocks = SIM_SM_THREADS / threads;
	if (shared && (size_t)blocks > SIM_SHARED_SM / shared)
		blocks = (int)(SIM_SHARED_SM / shared);
	return blocks;
}
