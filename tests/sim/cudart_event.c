/*
 * Making, asking and ending streams and events: what has no per-thread form. The rest of the stream
 * functions are in cudart_stream.c.
 */
#include "cudart.h"

static cudaError_t stream_new(cudaStream_t *out, unsigned flags, int priority)
{
	*out = (cudaStream_t)sim_stream_create(flags & cudaStreamNonBlocking, priority);
	return result(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *out)
{
	ENTER(cudaStreamCreate);
	return stream_new(out, 0, 0);
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
	ENTER(cudaStreamCreateWithFlags);
	return stream_new(out, flags, 0);
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority)
{
	ENTER(cudaStreamCreateWithPriority);
	return stream_new(out, flags, priority);
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	ENTER(cudaStreamDestroy);
	return result(sim_stream_destroy(stream));
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	ENTER(cudaEventCreate);
	*out = (cudaEvent_t)sim_event_create(true);
	return result(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
	ENTER(cudaEventCreateWithFlags);
	*out = (cudaEvent_t)sim_event_create(!(flags & cudaEventDisableTiming));
	return result(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	ENTER(cudaEventDestroy);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_destroy((struct sim_event *)event));
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
	ENTER(cudaEventQuery);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_query((struct sim_event *)event));
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	ENTER(cudaEventSynchronize);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_synchronize((struct sim_event *)event));
}

static cudaError_t elapsed(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	if (!from || !to)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_elapsed((struct sim_event *)from, (struct sim_event *)to, ms));
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	ENTER(cudaEventElapsedTime);
	return elapsed(ms, from, to);
}

#if SIM_CUDA == 12
EXPORT cudaError_t cudaEventElapsedTime_v2(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	ENTER(cudaEventElapsedTime_v2);
	return elapsed(ms, from, to);
}
#endif

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	ENTER(cudaThreadExchangeStreamCaptureMode);
	*mode = (enum cudaStreamCaptureMode)sim_capture_exchange_mode((enum sim_mode) * mode);
	return cudaSuccess;
}
