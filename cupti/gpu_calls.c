/*
 * gpu_calls.c: ties what a device does to the call that made it do so.
 *
 * CUPTI calls back in the calling thread, within the call, and tells its number, which the device's
 * records have too. A call of the runtime that is hooked is open in the trace then: it gets the number. Any
 * other, of a library with a runtime of its own or to the driver, is seen here alone, and gets a span as well.
 */
#include <string.h>

#include "cupti/gpu.h"

#define CBIDS         1024u
#define CBID_MISSES   64u
#define NAME_BYTES    64u
#define FLUSH_EACH_NS 500000000u
#define DOMAINS       3u

/* Calls that put work on a device, by the beginning of their names. */
static const struct {
	uint8_t domain, category;
	const char *stem;
} families[] = {
	{ CUPTI_RUNTIME_API, TRACE_CATEGORY_LAUNCH, "cudaLaunch" },
	{ CUPTI_RUNTIME_API, TRACE_CATEGORY_LAUNCH, "__cudaLaunch" },
	{ CUPTI_RUNTIME_API, TRACE_CATEGORY_LAUNCH, "cudaGraphLaunch" },
	{ CUPTI_RUNTIME_API, TRACE_CATEGORY_COPY, "cudaMemcpy" },
	{ CUPTI_RUNTIME_API, TRACE_CATEGORY_COPY, "cudaMemset" },
	{ CUPTI_DRIVER_API, TRACE_CATEGORY_LAUNCH, "cuLaunch" },
	{ CUPTI_DRIVER_API, TRACE_CATEGORY_LAUNCH, "cuGraphLaunch" },
	{ CUPTI_DRIVER_API, TRACE_CATEGORY_COPY, "cuMemcpy" },
	{ CUPTI_DRIVER_API, TRACE_CATEGORY_COPY, "cuMemset" },
};

struct call {
	uint32_t generation; /* tare_generation that `function` is defined in */
	uint32_t function;
	uint8_t category;
};

static struct call calls[DOMAINS][CBIDS];
static uint64_t next_flush; /* clock units; 0: not yet known */

static bool is_family(uint32_t domain, const char *name, uint8_t *category_p)
{
	if (strstr(name, "HostFunc"))
		return false;
	for (unsigned i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (families[i].domain == domain &&
		    !strncmp(name, families[i].stem, strlen(families[i].stem))) {
			*category_p = families[i].category;
			return true;
		}
	return false;
}

static cupti_result enable_domain(uint32_t domain)
{
	unsigned misses = 0;

	for (uint32_t cbid = 1; cbid < CBIDS && misses < CBID_MISSES; cbid++) {
		const char *name = NULL;
		cupti_result result;

		if (gpu.callback_name(domain, cbid, &name) != CUPTI_OK || !name) {
			misses++;
			continue;
		}
		misses = 0;
		if (!is_family(domain, name, &calls[domain][cbid].category))
			continue;
		result = gpu.enable_callback(1, gpu.subscriber, domain, cbid);
		if (result != CUPTI_OK)
			return result;
	}
	return CUPTI_OK;
}

cupti_result gpu_calls_start(void)
{
	cupti_result result = enable_domain(CUPTI_RUNTIME_API);

	return result == CUPTI_OK ? enable_domain(CUPTI_DRIVER_API) : result;
}

void gpu_calls_forget(void)
{
	next_flush = 0;
}

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel. */
static size_t base_bytes(const char *name)
{
	size_t bytes = strlen(name);
	const char *end = strrchr(name, '_');

	return end && end[1] == 'v' && end[2] >= '3' ? (size_t)(end - name) : bytes;
}

static TARE_COLD bool define(struct call *call, struct tare_thread *thread, uint32_t domain,
			     uint32_t cbid)
{
	const char *name = NULL, *library = domain == CUPTI_RUNTIME_API ?
						    "a library's own libcudart" :
						    "libcuda.so.1";
	uint32_t id;

	if (gpu.callback_name(domain, cbid, &name) != CUPTI_OK || !name)
		return false;
	id = tare_next_id(&tare_function_ids);
	trace_define(thread->buffer, TRACE_RECORD_FUNCTION,
		     &(struct record_FUNCTION){
			     .function = id,
			     .category = call->category,
			     .name = { name, (uint32_t)base_bytes(name) },
			     .library = { library, (uint32_t)strlen(library) },
		     });
	__atomic_store_n(&call->function, id, __ATOMIC_RELAXED);
	__atomic_store_n(&call->generation, tare_generation, __ATOMIC_RELEASE);
	return true;
}

static void note_flush(uint64_t now)
{
	uint64_t due = __atomic_load_n(&next_flush, __ATOMIC_RELAXED);

	if (tare_likely(now < due))
		return;
	/* A unit is 1 to 2 ns, or exactly 1. */
	__atomic_store_n(&next_flush, now + FLUSH_EACH_NS, __ATOMIC_RELAXED);
	if (due)
		__atomic_store_n(&tare_device_flush_due, true, __ATOMIC_RELAXED);
}

static void enter(uint32_t domain, uint32_t cbid, const struct cupti_callback_data *data)
{
	struct tare_thread *thread;
	struct call *call;
	uint64_t now;

	*data->own = 0;
	if (domain >= DOMAINS || cbid >= CBIDS || !(thread = tare_begin(TARE_SOURCE_CUDA)))
		return;
	call = &calls[domain][cbid];
	now = tare_now();
	if (!thread->call || thread->call != thread->buffer->depth) {
		if (__atomic_load_n(&call->generation, __ATOMIC_ACQUIRE) != tare_generation &&
		    !define(call, thread, domain, cbid)) {
			tare_end(thread);
			return;
		}
		tare_close_ops(thread, __builtin_frame_address(0));
		trace_enter(thread->buffer, now, CALL,
			    __atomic_load_n(&call->function, __ATOMIC_RELAXED), tare_site(thread));
		thread->call = thread->buffer->depth;
		*data->own = thread->call;
		thread->correlation = 0;
	}
	if (data->correlation != thread->correlation) {
		thread->correlation = data->correlation;
		trace_put(thread->buffer, now, CORRELATION, data->correlation);
	}
	note_flush(now);
	tare_end(thread);
}

void gpu_call(void *user, uint32_t domain, uint32_t cbid, const struct cupti_callback_data *data)
{
	struct tare_thread *thread;

	(void)user;
	if (!gpu_is_on() || !data->own)
		return;
	if (data->site == CUPTI_ENTER) {
		enter(domain, cbid, data);
	} else if (*data->own && (thread = tare_begin_leave())) {
		thread->call = 0;
		trace_leave(thread->buffer, tare_now(), (uint32_t)*data->own - 1, 0);
		tare_end(thread);
	}
}
