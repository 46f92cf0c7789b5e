/*
 * Every function of the runtime's table, so that whatever a program imports exists: a weak
 * definition that says its own name and returns cudaErrorNotSupported. The modelled ones are
 * defined elsewhere and win. No CUDA header here: the prototypes would be in the way.
 */
#include "sim.h"

#if SIM_CUDA_MAJOR == 12
#define SONAME     "libcudart.so.12"
#define FN12(name) FN(name)
#define FN13(name)
#else
#define SONAME "libcudart.so.13"
#define FN12(name)
#define FN13(name) FN(name)
#endif

static const char *const names[] = {
#define FN(name) #name,
#include "cudart_names.def"
#undef FN
};

enum {
#define FN(name) FN_##name,
#include "cudart_names.def"
#undef FN
	FN_COUNT
};

struct sim_library cudart_library = {
	.soname = SONAME,
	.api = SIM_RUNTIME_API,
	.functions = names,
	.count = FN_COUNT,
};

int result(int rc);

__attribute__((constructor)) static void library_init(void)
{
	sim_library_add(&cudart_library);
}

#define FN(name)                                                                                   \
	__attribute__((weak, visibility("default"))) int name(void);                               \
	int name(void)                                                                             \
	{                                                                                          \
		sim_call(&cudart_library, FN_##name, SIM_PLAIN, 0);                                \
		return result(sim_missing(&cudart_library, FN_##name));                            \
	}
#include "cudart_names.def"
