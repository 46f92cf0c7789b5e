/*
 * Kernels and device variables as a CUDA program registers them before main, by the address of
 * their host side. One hash table, read on every launch, written while libraries are loaded.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cudart.h"

enum { KERNEL_MAGIC = 0x6b65726e };

struct cudart_kernel {
	unsigned magic;
	const void *stub; /* the host side, NULL for one of a loaded library */
	const char *name; /* mangled */
	uint64_t ns;
	int output; /* see sim_output_of */
};

struct entry {
	const void *key;
	struct cudart_kernel *kernel; /* or a variable: */
	void *address;
	size_t size;
};

static struct entry *table;
static size_t used, room; /* room is a power of 2 */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static struct entry *slot_of(struct entry *entries, size_t size, const void *key)
{
	size_t i = ((uintptr_t)key * 0x9e3779b97f4a7c15u) >> 20;

	while (entries[i & (size - 1)].key && entries[i & (size - 1)].key != key)
		i++;
	return &entries[i & (size - 1)];
}

static bool grow(void)
{
	size_t size = room ? room * 2 : 1 << 15;
	struct entry *entries = calloc(size, sizeof(*entries));

	if (!entries)
		return false;
	for (size_t i = 0; i < room; i++)
		if (table[i].key)
			*slot_of(entries, size, table[i].key) = table[i];
	free(table);
	table = entries;
	room = size;
	return true;
}

static void enter(const struct entry *e)
{
	pthread_rwlock_wrlock(&lock);
	if (used < room / 2 || grow()) {
		struct entry *slot = slot_of(table, room, e->key);

		used += !slot->key;
		*slot = *e;
	}
	pthread_rwlock_unlock(&lock);
}

static struct entry look_up(const void *key)
{
	struct entry e = { 0 };

	pthread_rwlock_rdlock(&lock);
	if (room && key)
		e = *slot_of(table, room, key);
	pthread_rwlock_unlock(&lock);
	return e;
}

static struct cudart_kernel *kernel_new(const void *stub, const char *name)
{
	struct cudart_kernel *kernel = malloc(sizeof(*kernel));

	if (kernel)
		*kernel = (struct cudart_kernel){
			.magic = KERNEL_MAGIC,
			.stub = stub,
			.name = name,
			.ns = sim_kernel_ns(name),
			.output = sim_output_of(name),
		};
	return kernel;
}

const struct cudart_kernel *kernel_find(const void *func)
{
	const struct cudart_kernel *kernel = look_up(func).kernel;

	if (!kernel && func && ((const struct cudart_kernel *)func)->magic == KERNEL_MAGIC)
		kernel = func;
	return kernel;
}

const char *kernel_name(const struct cudart_kernel *kernel)
{
	return kernel->name;
}

uint64_t kernel_ns(const struct cudart_kernel *kernel)
{
	return kernel->ns;
}

int kernel_output(const struct cudart_kernel *kernel)
{
	return kernel->output;
}

void *symbol_address(const void *symbol, size_t *size)
{
	struct entry e = look_up(symbol);

	if (e.key && !e.kernel && !e.address) {
		if (sim_alloc(SIM_MEM_DEVICE, e.size, 0, &e.address))
			return NULL;
		enter(&e);
	}
	*size = e.size;
	return e.address;
}

/* ---- what nvcc's host code calls ---- */

static char module;

EXPORT void **__cudaRegisterFatBinary(void *fat_binary)
{
	(void)fat_binary;
	sim_call(&cudart_library, FN___cudaRegisterFatBinary, SIM_PLAIN, 0);
	return (void **)&module;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
	sim_call(&cudart_library, FN___cudaRegisterFatBinaryEnd, SIM_PLAIN, 0);
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
	sim_call(&cudart_library, FN___cudaUnregisterFatBinary, SIM_PLAIN, 0);
}

EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	sim_call(&cudart_library, FN___cudaInitModule, SIM_PLAIN, 0);
	return 1;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *stub, char *device_stub,
				   const char *name, int limit, uint3 *tid, uint3 *bid, dim3 *block,
				   dim3 *grid, int *warp)
{
	(void)handle;
	(void)device_stub;
	(void)limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	sim_call(&cudart_library, FN___cudaRegisterFunction, SIM_PLAIN, 0);
	enter(&(struct entry){ .key = stub, .kernel = kernel_new(stub, name) });
}

EXPORT void __cudaRegisterVar(void **handle, char *variable, char *device_side, const char *name,
			      int external, size_t size, int constant, int global)
{
	(void)handle;
	(void)device_side;
	(void)name;
	(void)external;
	(void)constant;
	(void)global;
	sim_call(&cudart_library, FN___cudaRegisterVar, SIM_PLAIN, 0);
	enter(&(struct entry){ .key = variable, .size = size });
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **variable, char *device_side,
				     const char *name, int external, size_t size, int constant,
				     int global)
{
	(void)handle;
	(void)device_side;
	(void)name;
	(void)external;
	(void)constant;
	(void)global;
	sim_call(&cudart_library, FN___cudaRegisterManagedVar, SIM_PLAIN, 0);
	sim_alloc(SIM_MEM_MANAGED, size, 0, variable);
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *stub)
{
	ENTER(__cudaGetKernel);
	*out = (cudaKernel_t)(void *)kernel_find(stub);
	return result(*out ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaGetKernel(cudaKernel_t *out, const void *stub)
{
	ENTER(cudaGetKernel);
	*out = (cudaKernel_t)(void *)kernel_find(stub);
	return result(*out ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	const struct cudart_kernel *kernel;

	ENTER(cudaFuncGetName);
	kernel = kernel_find(func);
	if (!kernel)
		return result(cudaErrorInvalidDeviceFunction);
	*name = kernel->name;
	return cudaSuccess;
}

/* The <<<grid, block, shared, stream>>> of a launch on its way to the stub. */
struct configuration {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

enum { MAX_NESTED = 8 };

static _Thread_local struct configuration configurations[MAX_NESTED];
static _Thread_local unsigned nested;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					    struct CUstream_st *stream)
{
	ENTER(__cudaPushCallConfiguration);
	if (nested == MAX_NESTED)
		return 1;
	configurations[nested++] = (struct configuration){ grid, block, shared, stream };
	return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	ENTER(__cudaPopCallConfiguration);
	if (!nested)
		return result(cudaErrorInvalidConfiguration);
	const struct configuration *c = &configurations[--nested];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(cudaStream_t *)stream = c->stream;
	return cudaSuccess;
}

EXPORT cudaError_t cudaGetSymbolAddress(void **out, const void *symbol)
{
	size_t size;

	ENTER(cudaGetSymbolAddress);
	*out = symbol_address(symbol, &size);
	return result(*out ? cudaSuccess : cudaErrorInvalidSymbol);
}

EXPORT cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	ENTER(cudaGetSymbolSize);
	return result(symbol_address(symbol, size) ? cudaSuccess : cudaErrorInvalidSymbol);
}

/* ---- libraries loaded at run time: any name is a kernel of theirs ---- */

EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
				       enum cudaJitOption *jit_options, void **jit_values,
				       unsigned int jit_count, enum cudaLibraryOption *options,
				       void **values, unsigned int count)
{
	(void)code;
	(void)jit_options;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	ENTER(cudaLibraryLoadData);
	*library = (cudaLibrary_t)(void *)&module;
	return cudaSuccess;
}

EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	(void)library;
	ENTER(cudaLibraryUnload);
	return cudaSuccess;
}

EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
	(void)library;
	ENTER(cudaLibraryGetKernel);
	char *copy = strdup(name);
	*out = (cudaKernel_t)(void *)(copy ? kernel_new(NULL, copy) : NULL);
	return result(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
						   int value, int device)
{
	(void)kernel;
	(void)attr;
	(void)value;
	(void)device;
	ENTER(cudaKernelSetAttributeForDevice);
	return cudaSuccess;
}
