/*
 * Allocation, registration, memory pools and what is known of a pointer. The functions that take a
 * stream are in cudart_stream.c.
 */
#include "cudart.h"

static cudaError_t allocate(enum sim_memory type, size_t size, unsigned flags, void **out)
{
	int rc = sim_capture_check();

	if (!rc)
		rc = sim_alloc(type, size, flags, out);
	return result(rc);
}

static cudaError_t release(enum sim_memory type, void *p)
{
	int rc = p ? sim_capture_check() : SIM_OK;

	if (!rc)
		rc = sim_free(type, p, true);
	return result(rc);
}

EXPORT cudaError_t cudaMalloc(void **out, size_t size)
{
	ENTER(cudaMalloc);
	return allocate(SIM_MEM_DEVICE, size, 0, out);
}

EXPORT cudaError_t cudaMallocManaged(void **out, size_t size, unsigned int flags)
{
	ENTER(cudaMallocManaged);
	return allocate(SIM_MEM_MANAGED, size, flags, out);
}

static size_t pitch_of(size_t width)
{
	return (width + 511) & ~(size_t)511;
}

EXPORT cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
	ENTER(cudaMallocPitch);
	*pitch = pitch_of(width);
	return allocate(SIM_MEM_DEVICE, *pitch * height, 0, out);
}

EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	ENTER(cudaMalloc3D);
	*out = (struct cudaPitchedPtr){
		.pitch = pitch_of(extent.width),
		.xsize = extent.width,
		.ysize = extent.height,
	};
	return allocate(SIM_MEM_DEVICE, out->pitch * extent.height * extent.depth, 0, &out->ptr);
}

EXPORT cudaError_t cudaFree(void *p)
{
	ENTER(cudaFree);
	return release(SIM_MEM_DEVICE, p);
}

EXPORT cudaError_t cudaMallocHost(void **out, size_t size)
{
	ENTER(cudaMallocHost);
	return allocate(SIM_MEM_HOST, size, 0, out);
}

EXPORT cudaError_t cudaHostAlloc(void **out, size_t size, unsigned int flags)
{
	ENTER(cudaHostAlloc);
	return allocate(SIM_MEM_HOST, size, flags, out);
}

EXPORT cudaError_t cudaFreeHost(void *p)
{
	ENTER(cudaFreeHost);
	return release(SIM_MEM_HOST, p);
}

EXPORT cudaError_t cudaHostRegister(void *p, size_t size, unsigned int flags)
{
	ENTER(cudaHostRegister);
	return result(sim_host_register(p, size, flags));
}

EXPORT cudaError_t cudaHostUnregister(void *p)
{
	ENTER(cudaHostUnregister);
	return result(sim_host_unregister(p));
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **out, void *p, unsigned int flags)
{
	struct sim_region r;

	(void)flags;
	ENTER(cudaHostGetDevicePointer);
	if (!sim_region_find(p, &r) || r.type != SIM_MEM_HOST)
		return result(cudaErrorInvalidValue);
	*out = p;
	return cudaSuccess;
}

EXPORT cudaError_t cudaHostGetFlags(unsigned int *flags, void *p)
{
	struct sim_region r;

	ENTER(cudaHostGetFlags);
	if (!sim_region_find(p, &r) || r.type != SIM_MEM_HOST)
		return result(cudaErrorInvalidValue);
	*flags = r.flags;
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	ENTER(cudaMemGetInfo);
	sim_memory_info(free, total);
	return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p)
{
	struct sim_region r;

	ENTER(cudaPointerGetAttributes);
	*out = (struct cudaPointerAttributes){
		.type = cudaMemoryTypeUnregistered,
		.device = cudaInvalidDeviceId,
		.hostPointer = (void *)p,
	};
	if (!sim_region_find(p, &r))
		return cudaSuccess;
	out->type = r.type == SIM_MEM_HOST   ? cudaMemoryTypeHost :
		    r.type == SIM_MEM_DEVICE ? cudaMemoryTypeDevice :
					       cudaMemoryTypeManaged;
	out->device = r.device;
	out->devicePointer = (void *)p;
	out->hostPointer = r.type == SIM_MEM_DEVICE ? NULL : (void *)p;
	return cudaSuccess;
}

/* ---- pools: one per device, which keeps nothing ---- */

static cudaMemPool_t pool_of(int device)
{
	static char pools[64];

	return (cudaMemPool_t)&pools[device & 63];
}

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	ENTER(cudaDeviceGetDefaultMemPool);
	*pool = pool_of(device);
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	ENTER(cudaDeviceGetMemPool);
	*pool = pool_of(device);
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	(void)pool;
	(void)keep;
	ENTER(cudaMemPoolTrimTo);
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
					   void *value)
{
	(void)pool;
	(void)attr;
	(void)value;
	ENTER(cudaMemPoolSetAttribute);
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
					   void *value)
{
	size_t free, total;

	(void)pool;
	ENTER(cudaMemPoolGetAttribute);
	if (attr < cudaMemPoolAttrReleaseThreshold) {
		*(int *)value = 1;
		return cudaSuccess;
	}
	sim_memory_info(&free, &total);
	*(uint64_t *)value = attr == cudaMemPoolAttrReleaseThreshold ? 0 : total - free;
	return cudaSuccess;
}

EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
					size_t count)
{
	(void)pool;
	(void)list;
	(void)count;
	ENTER(cudaMemPoolSetAccess);
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
						  void *value)
{
	(void)device;
	(void)attr;
	ENTER(cudaDeviceGetGraphMemAttribute);
	*(uint64_t *)value = 0;
	return cudaSuccess;
}

EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
						  void *value)
{
	(void)device;
	(void)attr;
	(void)value;
	ENTER(cudaDeviceSetGraphMemAttribute);
	return cudaSuccess;
}
