/*
 * unwinder.c: the parts of libgcc's unwinder that compiled code refers to, found at run time.
 *
 * A C function with a cleanup (nodes.c) needs __gcc_personality_v0 and _Unwind_Resume. To link libgcc_s
 * for them would load it into every process that libtare.so is loaded into. An exception that passes
 * through the function was thrown with it, so it is there by then.
 *
 * <unwind.h> is not included: it would make the two names exported ones.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "torchhooks/torch.h"

#define HIDDEN __attribute__((visibility("hidden")))

struct _Unwind_Exception;
struct _Unwind_Context;

HIDDEN int __gcc_personality_v0(int version, int actions, uint64_t exception_class,
				struct _Unwind_Exception *exception,
				struct _Unwind_Context *context);
HIDDEN void _Unwind_Resume(struct _Unwind_Exception *exception);

void *unwinder_find(const char *name)
{
	void *libgcc = torch_loaded("libgcc_s.so.1");

	return dlsym(libgcc ? libgcc : RTLD_DEFAULT, name);
}

#define URC_CONTINUE_UNWIND 8 /* _URC_CONTINUE_UNWIND: "not for me" */

int __gcc_personality_v0(int version, int actions, uint64_t exception_class,
			 struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	int (*real)(int, int, uint64_t, struct _Unwind_Exception *, struct _Unwind_Context *) =
		unwinder_find("__gcc_personality_v0");

	if (!real)
		return URC_CONTINUE_UNWIND;
	return real(version, actions, exception_class, exception, context);
}

/* Never returns: goes on with the frames above the one that called it. Ours in between has no cleanup. */
void _Unwind_Resume(struct _Unwind_Exception *exception)
{
	void (*real)(struct _Unwind_Exception *) = unwinder_find("_Unwind_Resume");

	if (real)
		real(exception);
	__builtin_trap();
}
