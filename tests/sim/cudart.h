/*
 * What the files of the simulated CUDA runtime share. Compiled once for each CUDA major version,
 * against that version's own headers, so that the compiler checks every prototype and layout;
 * the files listed as SIM_TWICE in sim.mk are compiled a second time with
 * CUDA_API_PER_THREAD_DEFAULT_STREAM, which makes the headers rename their functions to the _ptsz
 * and _ptds forms.
 *
 * An exported function never calls another one: a tracer would see a call that no program made.
 */
#ifndef TARE_SIM_CUDART_H
#define TARE_SIM_CUDART_H

#include <cuda_runtime_api.h>
#include "sim.h"

#define SIM_CUDA (CUDART_VERSION / 1000)

/* Each of the three pastes by itself: a name passed on to another macro would be renamed. */
#define FN(name) FN_##name,
#if SIM_CUDA == 12
#define FN12(name) FN_##name,
#define FN13(name)
#else
#define FN12(name)
#define FN13(name) FN_##name,
#endif

enum {
#include "cudart_names.def"
	FN_COUNT
};

#undef FN
#undef FN12
#undef FN13

#define EXPORT __attribute__((visibility("default")))

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define SIM_NONE SIM_PER_THREAD
#else
#define SIM_NONE SIM_LEGACY
#endif

extern struct sim_library cudart_library;

/* Leaves rc for cudaGetLastError, if it is an error, and returns it. */
cudaError_t result(int rc);

/* Counts the call, and ends it in a process that may not use CUDA. name may be a header's macro. */
#define ENTER(name)                   ENTER_AS(name, SIM_PLAIN, 0)
#define ENTER_AS(name, column, bytes) ENTER_(name, column, bytes)
#define ENTER_(name, column, bytes)                                                                \
	TIMED;                                                                                     \
	__attribute__((cleanup(sim_leave))) struct sim_scope enter_scope;                          \
	do {                                                                                       \
		int enter_rc = sim_enter(&enter_scope, &cudart_library, FN_##name, column, bytes); \
		if (enter_rc)                                                                      \
			return result(enter_rc);                                                   \
	} while (0)

/* The stream behind a handle; ends the call when there is none. */
#define STREAM(s, handle)                                                                          \
	struct sim_stream *s = sim_stream(handle, SIM_NONE);                                       \
	if (!s)                                                                                    \
	return result(cudaErrorInvalidResourceHandle)

struct cudart_kernel;

/* func is a host stub or a kernel handle; NULL when it is neither. */
const struct cudart_kernel *kernel_find(const void *func);
const char *kernel_name(const struct cudart_kernel *kernel);
uint64_t kernel_ns(const struct cudart_kernel *kernel);
int kernel_output(const struct cudart_kernel *kernel);
/* The device memory of a __device__ or __constant__ variable; NULL when there is none. */
void *symbol_address(const void *symbol, size_t *size);

#endif
