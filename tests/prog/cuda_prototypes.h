/*
 * cuda_prototypes.h: prototypes of every function in cuda_hooks.def, for programs without CUDA
 * headers. CUDART_MAJOR chooses the runtime, as in the table.
 */
#pragma once

#include "preload/cuda_types.h"

#define PLAIN(name, params) cudaError_t name params;
#define PTSZ(name, params)  PLAIN(name, params) PLAIN(name##_ptsz, params)
#define PTDS(name, params)  PLAIN(name, params) PLAIN(name##_ptds, params)

#define HOOK(name, forms, category, event, params, ...) forms(name, params)
#define HOOK_DEVICE(name, params, ...)                  PLAIN(name, params)
#include "preload/cuda_hooks.def"
#undef HOOK
#undef HOOK_DEVICE
#undef PLAIN
#undef PTSZ
#undef PTDS
