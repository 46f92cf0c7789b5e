/*
 * cuda_runtime.c: the exported wrappers of the CUDA runtime, from cuda_hooks.def.
 *
 * Compiled once for each runtime, CUDART_MAJOR 11, 12 or 13. Nothing in the tree may call into it:
 * the dynamic linker binds a program's cudaX@libcudart.so.N here. See README.md for why versions.
 */
#include "preload/cuda_types.h"
#include "preload/hook.h"

#if CUDART_MAJOR == 11
#define CUDART_SONAME "libcudart.so.11.0"
#elif CUDART_MAJOR == 12
#define CUDART_SONAME "libcudart.so.12"
#elif CUDART_MAJOR == 13
#define CUDART_SONAME "libcudart.so.13"
#endif

static struct hook_library cudart = { .soname = CUDART_SONAME, .info = &hook_runtimes };

#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c)  JOIN_(a, b, c)
#define TEXT_(a)       #a
#define TEXT(a)        TEXT_(a)

/* The symbol behind cudaX@SONAME: cudart13_cudaX, local by exports.map. */
#define WRAPPER(name) JOIN(cudart, CUDART_MAJOR, name)

#define NONE               HOOK_NO_VALUE
#define UNPACK(...)        __VA_ARGS__
#define REAL(name, params) ((cudaError_t(*) params)hook_real(&hook_##name))

/* In a program that has no such function a call of it fails, as one that this device cannot do. */
#define RESOLVER(fn, its_category, params, args)                                                   \
	static cudaError_t first_##fn params;                                                      \
	static struct hook hook_##fn = {                                                           \
		.generation = HOOK_UNDEFINED,                                                      \
		.real = (hook_function *)first_##fn,                                               \
		.first = (hook_function *)first_##fn,                                              \
		.name = #fn,                                                                       \
		.library = &cudart,                                                                \
		.category = TRACE_CATEGORY_##its_category,                                         \
	};                                                                                         \
	static TARE_COLD cudaError_t first_##fn params                                             \
	{                                                                                          \
		if (!hook_resolve(&hook_##fn))                                                     \
			return cudaErrorNotSupported;                                              \
		return REAL(fn, params) args;                                                      \
	}

#define EXPORT(fn)                                                                                 \
	__asm__(".symver " TEXT(WRAPPER(fn)) ", " #fn "@" CUDART_SONAME);                          \
	TARE_EXPORT cudaError_t WRAPPER(fn)

/* Which events' calls may wait. */
#define LEAVE_CALL(span, result, value)   hook_leave(span, result, value)
#define LEAVE_LAUNCH(span, result, value) hook_leave(span, result, value)
#define LEAVE_SET(span, result, value)    hook_leave(span, result, value)
#define LEAVE_COPY(span, result, value)                                                            \
	hook_leave_waited(span, __builtin_frame_address(0), result, value)
#define LEAVE_MEMORY(span, result, value) LEAVE_COPY(span, result, value)
#define LEAVE_SYNC(span, result, value)   LEAVE_COPY(span, result, value)

#define SPAN(fn, category, event, params, args, details, value)                                    \
	RESOLVER(fn, category, params, args)                                                       \
	EXPORT(fn) params                                                                          \
	{                                                                                          \
		if (!hook_on())                                                                    \
			return REAL(fn, params) args;                                              \
                                                                                                   \
		uint64_t hook_span = hook_enter_##event(&hook_##fn, __builtin_frame_address(0),    \
							UNPACK details);                           \
		cudaError_t hook_result = REAL(fn, params) args;                                   \
                                                                                                   \
		if (hook_span)                                                                     \
			LEAVE_##event(hook_span, hook_result,                                      \
				      hook_result == cudaSuccess ? (uint64_t)(value) : NONE);      \
		return hook_result;                                                                \
	}

#define PLAIN(fn, ...)  SPAN(fn, __VA_ARGS__)
#define PTSZ(name, ...) SPAN(name, __VA_ARGS__) SPAN(name##_ptsz, __VA_ARGS__)
#define PTDS(name, ...) SPAN(name, __VA_ARGS__) SPAN(name##_ptds, __VA_ARGS__)

#define HOOK(name, forms, ...) forms(name, __VA_ARGS__)

#define HOOK_DEVICE(name, params, args, device)                                                    \
	RESOLVER(name, OTHER, params, args)                                                        \
	EXPORT(name) params                                                                        \
	{                                                                                          \
		cudaError_t hook_result = REAL(name, params) args;                                 \
                                                                                                   \
		if (hook_result == cudaSuccess)                                                    \
			hook_device = (device);                                                    \
		return hook_result;                                                                \
	}

#include "preload/cuda_hooks.def"
