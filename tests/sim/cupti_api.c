/*
 * The functions of the simulated CUPTI: all that torch's profiler imports, and what else a client of
 * the activity interface calls. One client and one subscriber, as the real one until 13.2.
 *
 * TARE_SIM_CUPTI_FAIL is a list of "function:error": what those return.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cupti_sim.h"

struct cupti cupti = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { STACK_KINDS = 16, STACK_DEPTH = 64 };

static _Thread_local struct {
	uint64_t ids[STACK_DEPTH];
	unsigned depth;
} external[STACK_KINDS];

static CUptiResult failure(const char *function)
{
	const char *list = getenv("TARE_SIM_CUPTI_FAIL");
	size_t length = strlen(function);

	if (sim_forked())
		return CUPTI_ERROR_NOT_INITIALIZED;
	while (list && *list) {
		if (!strncmp(list, function, length) && list[length] == ':')
			return (CUptiResult)atoi(list + length + 1);
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return CUPTI_SUCCESS;
}

#define MAY_FAIL()                                                                                 \
	do {                                                                                       \
		CUptiResult failed = failure(__func__);                                            \
		if (failed)                                                                        \
			return failed;                                                             \
	} while (0)

uint64_t cupti_stamp(void)
{
	struct timespec t;

	if (cupti.timestamp)
		return cupti.timestamp();
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- calls, as the core tells of them ---- */

static unsigned domain_of(const struct sim_scope *scope)
{
	return scope->api == SIM_RUNTIME_API ? CUPTI_CB_DOMAIN_RUNTIME_API :
					       CUPTI_CB_DOMAIN_DRIVER_API;
}

static void call_back(struct sim_scope *scope, unsigned cbid, CUpti_ApiCallbackSite site)
{
	unsigned domain = domain_of(scope);
	static const int success;
	CUpti_CallbackData data = {
		.callbackSite = site,
		.functionName = scope->function,
		.functionReturnValue = site == CUPTI_API_EXIT ? (void *)&success : NULL,
		.contextUid = (uint32_t)sim_device() + 1,
		.correlationData = &scope->kept,
		.correlationId = scope->correlation,
	};
	CUpti_CallbackFunc subscriber = cupti.subscriber;

	if (subscriber && cbid < CUPTI_CBIDS && cupti.callbacks[domain][cbid])
		subscriber(cupti.subscriber_data, domain, cbid, &data);
}

static bool is_recorded(unsigned domain, unsigned cbid)
{
	unsigned kind = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME :
								CUPTI_ACTIVITY_KIND_DRIVER;
	uint8_t filter = cbid < CUPTI_CBIDS ? cupti.api_filter[domain][cbid] : API_FILTER_NONE;

	return cbid && (cupti.kinds[kind] ? filter != API_FILTER_OFF : filter == API_FILTER_ON);
}

static void call_begins(struct sim_scope *scope)
{
	unsigned domain = domain_of(scope), cbid = cupti_cbid(domain, scope->function);

	call_back(scope, cbid, CUPTI_API_ENTER);
	scope->start = is_recorded(domain, cbid) ? cupti_stamp() : 0;
}

static void add_external(uint32_t correlation)
{
	if (!cupti.kinds[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
		return;
	for (unsigned kind = 0; kind < STACK_KINDS; kind++) {
		if (!external[kind].depth)
			continue;
		CUpti_ActivityExternalCorrelation e = {
			.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
			.externalKind = (CUpti_ExternalCorrelationKind)kind,
			.externalId = external[kind].ids[external[kind].depth - 1],
			.correlationId = correlation,
		};
		cupti_add_host_record(&e, sizeof(e));
	}
}

static void call_ends(struct sim_scope *scope)
{
	unsigned domain = domain_of(scope), cbid = cupti_cbid(domain, scope->function);

	if (is_recorded(domain, cbid)) {
		CUpti_ActivityAPI record = {
			.kind = domain == CUPTI_CB_DOMAIN_RUNTIME_API ?
					CUPTI_ACTIVITY_KIND_RUNTIME :
					CUPTI_ACTIVITY_KIND_DRIVER,
			.cbid = cbid,
			.start = scope->start,
			.end = cupti_stamp(),
			.processId = (uint32_t)getpid(),
			.threadId = cupti.system_thread_ids ? (uint32_t)gettid() :
							      (uint32_t)pthread_self(),
			.correlationId = scope->correlation,
		};
		pthread_mutex_lock(&cupti.lock);
		add_external(scope->correlation);
		cupti_add_host_record(&record, sizeof(record));
		pthread_mutex_unlock(&cupti.lock);
	}
	call_back(scope, cbid, CUPTI_API_EXIT);
}

static void observe(void)
{
	static const struct sim_observer observer = {
		.enter = call_begins,
		.leave = call_ends,
		.activity = cupti_activity,
	};

	sim_observe(&observer);
	cupti_worker_start();
}

__attribute__((constructor)) static void start(void)
{
	cupti_clock_changed();
}

/* ---- the activity interface ---- */

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
	CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed)
{
	MAY_FAIL();
	if (!requested || !completed)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	cupti.requested = requested;
	cupti.completed = completed;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f)
{
	MAY_FAIL();
	if (!f)
		return CUPTI_ERROR_INVALID_PARAMETER;
	cupti.timestamp = f;
	cupti_clock_changed();
	return CUPTI_SUCCESS;
}

static CUptiResult set_kind(CUpti_ActivityKind kind, bool on)
{
	if ((unsigned)kind >= CUPTI_KINDS)
		return CUPTI_ERROR_INVALID_KIND;
	pthread_mutex_lock(&cupti.lock);
	cupti.kinds[kind] = on;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	MAY_FAIL();
	observe();
	return set_kind(kind, true);
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	MAY_FAIL();
	return set_kind(kind, false);
}

static CUptiResult set_filter(unsigned domain, CUpti_CallbackId cbid, uint8_t enable)
{
	if (cbid >= CUPTI_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	observe();
	cupti.api_filter[domain][cbid] = enable ? API_FILTER_ON : API_FILTER_OFF;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	MAY_FAIL();
	return set_filter(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable);
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	MAY_FAIL();
	return set_filter(CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable);
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
	(void)enable;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
	MAY_FAIL();
	if (!cupti.completed)
		return CUPTI_ERROR_INVALID_OPERATION;
	cupti_flush(flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t used,
						       CUpti_Activity **record)
{
	uint8_t *next = buffer;

	if (!buffer || !used)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	if (*record)
		next = (uint8_t *)*record + cupti_record_bytes((*record)->kind);
	if (next >= buffer + used)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)next;
	return cupti_record_bytes((*record)->kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
							      size_t *dropped)
{
	(void)context;
	(void)stream;
	pthread_mutex_lock(&cupti.lock);
	*dropped = cupti.dropped;
	cupti.dropped = 0;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	if ((unsigned)kind >= STACK_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (external[kind].depth < STACK_DEPTH)
		external[kind].ids[external[kind].depth++] = id;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
	if ((unsigned)kind >= STACK_KINDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!external[kind].depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	external[kind].depth--;
	if (last)
		*last = external[kind].ids[external[kind].depth];
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute,
						      size_t *size, void *value)
{
	(void)attribute;
	(void)size;
	(void)value;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	cupti.system_thread_ids = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *now)
{
	*now = cupti_stamp();
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
	*version = SIM_CUDA_MAJOR == 12 ? 26 : CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
	*text = result == CUPTI_SUCCESS                                  ? "CUPTI_SUCCESS" :
		result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_"
									   "SUBSCRIBERS_NOT_"
									   "SUPPORTED" :
									   "CUPTI_ERROR_UNKNOWN";
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiFinalize(void)
{
	pthread_mutex_lock(&cupti.lock);
	memset(cupti.kinds, 0, sizeof(cupti.kinds));
	memset(cupti.callbacks, 0, sizeof(cupti.callbacks));
	cupti.subscriber = NULL;
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

/* ---- callbacks ---- */

EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
					   void *data)
{
	CUptiResult rc = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;

	MAY_FAIL();
	pthread_mutex_lock(&cupti.lock);
	if (!cupti.subscriber) {
		cupti.subscriber_data = data;
		cupti.subscriber = callback;
		*out = (CUpti_SubscriberHandle)(void *)&cupti;
		rc = CUPTI_SUCCESS;
	}
	pthread_mutex_unlock(&cupti.lock);
	return rc;
}

EXPORT CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	MAY_FAIL();
	if ((void *)subscriber != (void *)&cupti)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&cupti.lock);
	cupti.subscriber = NULL;
	memset(cupti.callbacks, 0, sizeof(cupti.callbacks));
	pthread_mutex_unlock(&cupti.lock);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
						CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	MAY_FAIL();
	if ((void *)subscriber != (void *)&cupti)
		return CUPTI_ERROR_INVALID_PARAMETER;
	observe();
	if ((unsigned)domain < CUPTI_DOMAINS && cbid < CUPTI_CBIDS)
		cupti.callbacks[domain][cbid] = enable;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
					      CUpti_CallbackDomain domain)
{
	MAY_FAIL();
	if ((void *)subscriber != (void *)&cupti)
		return CUPTI_ERROR_INVALID_PARAMETER;
	observe();
	if ((unsigned)domain < CUPTI_DOMAINS)
		memset(cupti.callbacks[domain], enable != 0, sizeof(cupti.callbacks[domain]));
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
						 const char **name)
{
	*name = cupti_callback_name(domain, cbid);
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
