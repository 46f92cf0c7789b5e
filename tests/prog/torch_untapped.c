/*
 * Stands before libtare.so in LD_PRELOAD and hands on to libtorch's own getStepCallbacksUnlessEmpty: as
 * if that were bound inside libtorch, so that no operator comes through the tap.
 */
#include <dlfcn.h>
#include <stdint.h>

#define SYMBOL _ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE
#define NAME   "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"

void *SYMBOL(void *result, uint8_t scope)
{
	static void *(*real)(void *, uint8_t);

	if (!real)
		real = (void *(*)(void *, uint8_t))dlsym(
			dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY), NAME);
	return real(result, scope);
}
