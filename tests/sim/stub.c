/*
 * A stand-in for a math library: every name that torch imports from it, counted, with a body by the
 * rule that gen_stubs.py found for the name. Weak, so that a body in stub_<library>.c wins.
 *
 *   CREATE      writes a new handle to the first argument
 *   DESTROY     frees the first argument
 *   SET_STREAM  keeps the second argument in the handle    GET_STREAM  writes it to the second
 *   GET         writes an int 0 to the second argument
 *   OUT4, OUT8  writes 0, in 4 or 8 bytes, to the arguments from `first` to `last`
 *   WORK        takes device time on the handle's stream
 *   PLAIN       does nothing
 *   FAIL        returns CUPTI's "unknown", as CUPTI does without a driver
 *
 * All but FAIL return 0, which is success in each of these libraries.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "stub.h"

enum { HANDLE_MAGIC = 0x68646c65, CUPTI_UNKNOWN = 999, MAX_ARGUMENTS = 24 };

enum stub_rule {
	RULE_PLAIN,
	RULE_CREATE,
	RULE_DESTROY,
	RULE_SET_STREAM,
	RULE_GET_STREAM,
	RULE_GET,
	RULE_OUT4,
	RULE_OUT8,
	RULE_WORK,
	RULE_FAIL,
};

static const char *const names[] = {
#define FN(name, kind, first, last) #name,
#include SIM_NAMES
#undef FN
};

/* What a profiler sees of them. */
static const char *const kernels[] = {
#define FN(name, kind, first, last) #name "_kernel",
#include SIM_NAMES
#undef FN
};

struct sim_library stub_library = {
	.soname = SIM_SONAME,
	.functions = names,
	.count = FN_COUNT,
};

__attribute__((constructor)) static void library_init(void)
{
	sim_library_add(&stub_library);
}

void *stub_handle_sized(size_t size)
{
	struct stub_handle *h = calloc(1, size);

	if (h)
		h->magic = HANDLE_MAGIC;
	return h;
}

struct stub_handle *stub_handle_new(void)
{
	return stub_handle_sized(sizeof(struct stub_handle));
}

static struct stub_handle *handle_of(void *p)
{
	struct stub_handle *h = p;

	/* Some libraries' handles are small numbers. */
	return (uintptr_t)p > UINT16_MAX && h->magic == HANDLE_MAGIC ? h : NULL;
}

int stub_work(unsigned function, void *stream, const struct sim_touched *touched)
{
	static _Atomic uint64_t known_ns[FN_COUNT]; /* plus 1 */
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);
	uint64_t ns = known_ns[function];

	if (!ns) {
		ns = sim_library_ns(names[function]) + 1;
		known_ns[function] = ns;
	}
	if (!s)
		return SIM_INVALID_HANDLE;
	/* Through a runtime of the library's own: no interposed function sees it. */
	__attribute__((cleanup(sim_leave))) struct sim_scope launch;
	sim_enter_private(&launch, SIM_DRIVER_API, "cuLaunchKernel");
	return sim_launch(s, kernels[function], ns - 1, touched);
}

static void *argument(va_list *rest, unsigned steps)
{
	void *p = NULL;

	while (steps--)
		p = va_arg(*rest, void *);
	return p;
}

/* A caller may leave out what it does not ask for. */
static void zero(void *p, size_t size)
{
	if (p)
		memset(p, 0, size);
}

/* Any pointer among the arguments may be an output. */
static int work(unsigned function, void *stream, va_list *rest)
{
	struct sim_touched touched = { 0 };

	for (unsigned i = 0; i < MAX_ARGUMENTS; i++)
		sim_touch(&touched, (uintptr_t)va_arg(*rest, void *));
	return stub_work(function, stream, &touched);
}

static int run(unsigned function, enum stub_rule rule, unsigned first, unsigned last, void *a,
	       va_list *rest)
{
	TIMED;
	struct stub_handle *h = rule == RULE_CREATE ? NULL : handle_of(a);
	int rc = sim_call(&stub_library, function, SIM_PLAIN, 0);

	switch (rule) {
	case RULE_CREATE: *(struct stub_handle **)a = stub_handle_new(); break;
	case RULE_DESTROY:
		if (h)
			h->magic = 0;
		free(h);
		break;
	case RULE_SET_STREAM:
		if (h)
			h->stream = argument(rest, 1);
		break;
	case RULE_GET_STREAM: *(void **)argument(rest, 1) = h ? h->stream : NULL; break;
	case RULE_GET: zero(argument(rest, 1), sizeof(int)); break;
	case RULE_OUT4:
	case RULE_OUT8:
		for (unsigned i = first, steps = first; i <= last; i++, steps = 1)
			zero(argument(rest, steps), rule == RULE_OUT4 ? 4 : 8);
		break;
	case RULE_WORK:
		if (!rc)
			rc = work(function, h ? h->stream : NULL, rest);
		break;
	case RULE_FAIL: return CUPTI_UNKNOWN;
	case RULE_PLAIN: break;
	}
	return rc;
}

/* Variadic, so that any integer argument of whatever prototype the caller has can be reached. */
#define FN(name, kind, first, last)                                                                \
	__attribute__((weak, visibility("default"))) int name(void *a, ...);                       \
	int name(void *a, ...)                                                                     \
	{                                                                                          \
		va_list rest;                                                                      \
		va_start(rest, a);                                                                 \
		int rc = run(FN_##name, RULE_##kind, first, last, a, &rest);                       \
		va_end(rest);                                                                      \
		return rc;                                                                         \
	}
#include SIM_NAMES
