/*
 * library_calls.c: the exported wrappers of cuBLAS, cuDNN, NCCL, ..., from library_hooks.def.
 *
 * Nothing in the tree may call into it: the dynamic linker binds a program's cublasX@libcublas.so.N
 * here. Like the wrappers of cuda_runtime.c there is one for each version of a library, with a real
 * pointer of its own.
 */
#include <string.h>

#include "preload/hook.h"
#include "preload/library_hooks.def"
#include "preload/library_types.h"

#define LIBRARY(tag, its_soname, node, status, ...)                                                \
	static struct hook_library library_##tag = {                                               \
		.soname = its_soname,                                                              \
		.info = &hook_libraries,                                                           \
		.unversioned = IS_UNVERSIONED(node),                                               \
	};

#define IS_UNVERSIONED(node) !__builtin_strcmp(node, "TARE")

LIBRARIES(LIBRARY)

/* What the caller's reference without a version would be bound to depends on the caller. */
#define REAL(node, hook, params)                                                                   \
	((int(*) params)(IS_UNVERSIONED(node) ?                                                    \
				 hook_real_for(&hook, __builtin_return_address(0)) :               \
				 hook_real(&hook)))

/* The symbol behind cublasX@SONAME: library_CUBLAS_13_cublasX, local by exports.map. */
#define WRAPPER(tag, soname, node, status, fn, params, args)                                       \
	static int first_##tag##_##fn params;                                                      \
	static struct hook hook_##tag##_##fn = {                                                   \
		.generation = HOOK_UNDEFINED,                                                      \
		.real = (hook_function *)first_##tag##_##fn,                                       \
		.first = (hook_function *)first_##tag##_##fn,                                      \
		.name = #fn,                                                                       \
		.library = &library_##tag,                                                         \
		.category = TRACE_CATEGORY_LIBRARY,                                                \
	};                                                                                         \
	static TARE_COLD int first_##tag##_##fn params                                             \
	{                                                                                          \
		if (!hook_resolve(&hook_##tag##_##fn))                                             \
			return status;                                                             \
		return ((int(*) params)hook_real(&hook_##tag##_##fn))args;                         \
	}                                                                                          \
                                                                                                   \
	__asm__(".symver library_" #tag "_" #fn ", " #fn "@" node);                                \
	TARE_EXPORT int library_##tag##_##fn params                                                \
	{                                                                                          \
		if (!hook_on())                                                                    \
			return REAL(node, hook_##tag##_##fn, params) args;                         \
                                                                                                   \
		uint64_t hook_span =                                                               \
			hook_enter_CALL(&hook_##tag##_##fn, __builtin_frame_address(0));           \
		int hook_result = REAL(node, hook_##tag##_##fn, params) args;                      \
                                                                                                   \
		if (hook_span)                                                                     \
			hook_leave(hook_span, hook_result, HOOK_NO_VALUE);                         \
		return hook_result;                                                                \
	}

#define HOOK(library, fn, params, args) library(WRAPPER, fn, params, args)

#include "preload/library_hooks.def"
