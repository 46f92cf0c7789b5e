/*
 * The numbers and names of callbacks, from NVIDIA's lists, which sim.mk cuts out of the headers.
 */
#include <stdlib.h>
#include <string.h>
#include "cupti_sim.h"

struct callback_name {
	unsigned cbid;
	const char *name;
};

static const struct callback_name runtime[] = {
#define CBID(number, name) { number, name },
#include "cupti_runtime.names"
};

static const struct callback_name driver[] = {
#include "cupti_driver.names"
};

enum { RUNTIME_COUNT = sizeof(runtime) / sizeof(*runtime) };
enum { DRIVER_COUNT = sizeof(driver) / sizeof(*driver) };

static const struct callback_name *list_of(unsigned domain, size_t *count)
{
	*count = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? RUNTIME_COUNT :
		 domain == CUPTI_CB_DOMAIN_DRIVER_API  ? DRIVER_COUNT :
							 0;
	return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime : driver;
}

const char *cupti_callback_name(unsigned domain, unsigned cbid)
{
	size_t count;
	const struct callback_name *list = list_of(domain, &count);

	for (size_t i = 0; i < count; i++)
		if (list[i].cbid == cbid)
			return list[i].name;
	return NULL;
}

/* "cudaLaunchKernel_v7000" is that of cudaLaunchKernel. */
static bool is_of(const char *name, const char *function, size_t length)
{
	const char *rest = name + length;

	return !strncmp(name, function, length) &&
	       (!*rest || (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9'));
}

static unsigned look_up(unsigned domain, const char *function)
{
	size_t count, length = strlen(function);
	const struct callback_name *list = list_of(domain, &count);
	unsigned found = 0;

	/* The last one: a function's newest form. */
	for (size_t i = 0; i < count; i++)
		if (is_of(list[i].name, function, length))
			found = list[i].cbid;
	return found;
}

unsigned cupti_cbid(unsigned domain, const char *function)
{
	enum { CACHE = 1024 };
	static _Thread_local struct {
		const char *function;
		unsigned cbid;
	} cache[CACHE];
	size_t at = ((uintptr_t)function >> 2) % CACHE;

	if (cache[at].function != function) {
		cache[at].function = function;
		cache[at].cbid = look_up(domain, function);
	}
	return cache[at].cbid;
}
