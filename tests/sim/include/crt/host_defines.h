/*
 * The part of the CUDA toolkit's crt/host_defines.h that its C headers need: the runtime's pip
 * wheel leaves the crt folder out. Searched last, so that a toolkit's own file comes first.
 */
#ifndef TARE_SIM_HOST_DEFINES_H
#define TARE_SIM_HOST_DEFINES_H

#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define CUDARTAPI
#define CUDARTAPI_CDECL

#endif
