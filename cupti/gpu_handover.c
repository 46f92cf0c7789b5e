/*
 * gpu_handover.c: yields CUPTI to whoever else in the process wants it.
 *
 * CUPTI has one subscriber and one client for its records. torch.profiler and the like register when they
 * start: the wrappers here end our layer first, so that they find CUPTI as if we had never been there. Nothing
 * in the tree may call into this file: the dynamic linker binds others' cuptiX@libcupti.so.N here. A wrapper
 * for each SONAME, as of the runtime's functions: see preload/README.md.
 */
#include "cupti/gpu.h"

/* NODE(tag, SONAME): CUPTI's SONAMEs, which are the versions of its symbols. Read by gen_exports.sh. */
#define CUPTI_NODES(NODE, function)                                                                \
	NODE(cupti11_6, "libcupti.so.11.6", function)                                              \
	NODE(cupti11_7, "libcupti.so.11.7", function)                                              \
	NODE(cupti11_8, "libcupti.so.11.8", function)                                              \
	NODE(cupti12, "libcupti.so.12", function)                                                  \
	NODE(cupti13, "libcupti.so.13", function)

typedef cupti_result any_function(void *, void *, void *, void *);

static void yield(void)
{
	uint8_t state = tare_tls.state;

	gpu.foreign = true;
	if (!gpu_is_on())
		return;
	tare_tls.state = TARE_INSIDE;
	gpu_end("handed over: something else in the process began to use CUPTI");
	tare_tls.state = state;
}

#define WRAP(tag, soname, function)                                                                \
	__asm__(".symver " #tag "_" #function ", " #function "@" soname);                          \
	TARE_EXPORT cupti_result tag##_##function(void *a, void *b, void *c, void *d);             \
	TARE_EXPORT cupti_result tag##_##function(void *a, void *b, void *c, void *d)              \
	{                                                                                          \
		static any_function *real;                                                         \
                                                                                                   \
		if (!real)                                                                         \
			real = (any_function *)tare_find_function(soname, soname, #function);      \
		if (!real)                                                                         \
			return CUPTI_NOT_INITIALIZED;                                              \
		yield();                                                                           \
		return real(a, b, c, d);                                                           \
	}

CUPTI_NODES(WRAP, cuptiSubscribe)
CUPTI_NODES(WRAP, cuptiSubscribe_v2)
CUPTI_NODES(WRAP, cuptiActivityRegisterCallbacks)
CUPTI_NODES(WRAP, cuptiActivityRegisterCallbacks_v2)
