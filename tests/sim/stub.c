/*
 * A stand-in for a math library: every name that torch imports from it, counted, with a body by the
 * rule that gen_stubs.py found for the name. Weak, so that a body in stub_<library>.c wins.
 *
 *   CREATE   writes a new handle to the first argument    SET_STREAM  keeps the second argument
 *   DESTROY  frees the first argument                     GET_STREAM  writes it to the second
 *   GET      writes an int 0 to the second argument       WORK        takes device time
 *   PLAIN    does nothing                                 FAIL        returns CUPTI's "unknown"
 *
 * All return 0, which is success in each of these libraries, but FAIL.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "stub.h"

enum { HANDLE_MAGIC = 0x68646c65, FAILURE = 999 };

static const char *const names[] = {
#define FN(name, kind) #name,
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

struct stub_handle *stub_handle_new(void)
{
	struct stub_handle *h = malloc(sizeof(*h));

	if (h)
		*h = (struct stub_handle) { .magic = HANDLE_MAGIC };
	return h;
}

static struct stub_handle *handle_of(void *p)
{
	struct stub_handle *h = p;

	return h && h->magic == HANDLE_MAGIC ? h : NULL;
}

int stub_work(unsigned function, void *stream)
{
	static _Atomic uint64_t known_ns[FN_COUNT];     /* plus 1 */
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);
	uint64_t ns = known_ns[function];

	if (!ns) {
		ns = sim_library_ns(names[function]) + 1;
		known_ns[function] = ns;
	}
	return s ? sim_launch(s, ns - 1) : SIM_INVALID_HANDLE;
}

static int run_PLAIN(unsigned function, void *a, void *b)
{
	(void)a;
	(void)b;
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_FAIL(unsigned function, void *a, void *b)
{
	(void)a;
	(void)b;
	sim_call(&stub_library, function, SIM_PLAIN, 0);
	return FAILURE;
}

static int run_CREATE(unsigned function, void *a, void *b)
{
	(void)b;
	*(struct stub_handle **)a = stub_handle_new();
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_DESTROY(unsigned function, void *a, void *b)
{
	struct stub_handle *h = handle_of(a);

	(void)b;
	if (h) {
		h->magic = 0;
		free(h);
	}
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_GET(unsigned function, void *a, void *b)
{
	(void)a;
	*(int *)b = 0;
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_SET_STREAM(unsigned function, void *a, void *b)
{
	struct stub_handle *h = handle_of(a);

	if (h)
		h->stream = b;
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_GET_STREAM(unsigned function, void *a, void *b)
{
	const struct stub_handle *h = handle_of(a);

	*(void **)b = h ? h->stream : NULL;
	return sim_call(&stub_library, function, SIM_PLAIN, 0);
}

static int run_WORK(unsigned function, void *a, void *b)
{
	const struct stub_handle *h = handle_of(a);
	int rc = sim_call(&stub_library, function, SIM_PLAIN, 0);

	(void)b;
	return rc ? rc : stub_work(function, h ? h->stream : NULL);
}

/* A library without, say, a function that fails still has the rule. */
__attribute__((used)) static int (*const rules[])(unsigned, void *, void *) = {
	run_PLAIN, run_FAIL, run_CREATE, run_DESTROY, run_GET, run_SET_STREAM, run_GET_STREAM,
	run_WORK,
};

#define FN(name, kind)                                                            \
	__attribute__((weak, visibility("default"))) int name(void *a, void *b);  \
	int name(void *a, void *b)                                                \
	{                                                                         \
		return run_##kind(FN_##name, a, b);                               \
	}
#include SIM_NAMES
