/*
 * Every function of the driver's table: a weak definition that says its own name and returns
 * CUDA_ERROR_NOT_SUPPORTED. The modelled ones are in driver.c and win. No CUDA header here.
 */
#include "sim.h"

static const char *const names[] = {
#define FN(name) #name,
#include "driver_names.def"
#undef FN
};

enum {
#define FN(name) FN_##name,
#include "driver_names.def"
#undef FN
	FN_COUNT
};

struct sim_library driver_library = {
	.soname = "libcuda.so.1",
	.api = SIM_DRIVER_API,
	.functions = names,
	.count = FN_COUNT,
};

__attribute__((constructor)) static void library_init(void)
{
	sim_library_add(&driver_library);
}

#define FN(name)                                                                                   \
	__attribute__((weak, visibility("default"))) int name(void);                               \
	int name(void)                                                                             \
	{                                                                                          \
		sim_call(&driver_library, FN_##name, SIM_PLAIN, 0);                                \
		return sim_missing(&driver_library, FN_##name);                                    \
	}
#include "driver_names.def"
