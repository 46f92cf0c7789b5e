/*
 * cuda_fake.c: a stand-in for libcudart.so.N that has every function of cuda_hooks.def. Each
 * answers with a number made of its name and of every byte of its arguments, so that a caller sees
 * whether they came through. Built as a library by test_cuda_calls.py.
 * FAKE_RESULT: what each answers instead.
 */
#include <string.h>

#include "preload/cuda_types.h"

static unsigned mix(unsigned hash, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
	return hash;
}

#define EACH_0(...)
#define EACH_1(a)                                    hash = mix(hash, &(a), sizeof(a));
#define EACH_2(a, ...)                               EACH_1(a) EACH_1(__VA_ARGS__)
#define EACH_3(a, ...)                               EACH_1(a) EACH_2(__VA_ARGS__)
#define EACH_4(a, ...)                               EACH_1(a) EACH_3(__VA_ARGS__)
#define EACH_5(a, ...)                               EACH_1(a) EACH_4(__VA_ARGS__)
#define EACH_6(a, ...)                               EACH_1(a) EACH_5(__VA_ARGS__)
#define EACH_7(a, ...)                               EACH_1(a) EACH_6(__VA_ARGS__)
#define EACH_8(a, ...)                               EACH_1(a) EACH_7(__VA_ARGS__)
#define EACH_9(a, ...)                               EACH_1(a) EACH_8(__VA_ARGS__)
#define COUNT_(x, a, b, c, d, e, f, g, h, i, n, ...) n
#define COUNT(...)                                   COUNT_(x, ##__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JOIN_(a, b)                                  a##b
#define JOIN(a, b)                                   JOIN_(a, b)
#define EACH(...)                                    JOIN(EACH_, COUNT(__VA_ARGS__))(__VA_ARGS__)

#define FUNCTION(name, params, args)                                                               \
	cudaError_t name params;                                                                   \
	cudaError_t name params                                                                    \
	{                                                                                          \
		unsigned hash = mix(2166136261u, #name, strlen(#name));                            \
		EACH args return FAKE_RESULT;                                                      \
	}

#ifndef FAKE_RESULT
#define FAKE_RESULT (cudaError_t)(hash >> 1 | 1)
#endif

#define PLAIN(name, params, args) FUNCTION(name, params, args)
#define PTSZ(name, params, args)  PLAIN(name, params, args) PLAIN(name##_ptsz, params, args)
#define PTDS(name, params, args)  PLAIN(name, params, args) PLAIN(name##_ptds, params, args)

#define HOOK(name, forms, category, event, params, args, ...) forms(name, params, args)
#define HOOK_DEVICE(name, params, args, ...)                  PLAIN(name, params, args)

#include "preload/cuda_hooks.def"

cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_MAJOR * 1000;
	return cudaSuccess;
}
