/*
 * The last error of each thread, and what errors are called.
 */
#include "cudart.h"

static _Thread_local cudaError_t last_error;

cudaError_t result(int rc)
{
	if (rc)
		last_error = (cudaError_t)rc;
	return (cudaError_t)rc;
}

EXPORT cudaError_t cudaGetLastError(void)
{
	ENTER(cudaGetLastError);
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
	ENTER(cudaPeekAtLastError);
	return last_error;
}

#define ERRORS(ERROR)                                                                              \
	ERROR(cudaSuccess, "no error")                                                             \
	ERROR(cudaErrorInvalidValue, "invalid argument")                                           \
	ERROR(cudaErrorMemoryAllocation, "out of memory")                                          \
	ERROR(cudaErrorInitializationError, "initialization error")                                \
	ERROR(cudaErrorInvalidDeviceFunction, "invalid device function")                           \
	ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument")                     \
	ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected")                             \
	ERROR(cudaErrorInvalidDevice, "invalid device ordinal")                                    \
	ERROR(cudaErrorInvalidSymbol, "invalid device symbol")                                     \
	ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle")                           \
	ERROR(cudaErrorIllegalState, "the operation cannot be performed in this state")            \
	ERROR(cudaErrorNotReady, "device not ready")                                               \
	ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                 \
	ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                   \
	ERROR(cudaErrorHostMemoryAlreadyRegistered, "memory is already registered")                \
	ERROR(cudaErrorHostMemoryNotRegistered, "memory is not registered")                        \
	ERROR(cudaErrorNotSupported, "operation not supported")                                    \
	ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted while capturing")        \
	ERROR(cudaErrorStreamCaptureInvalidated, "capture was invalidated")                        \
	ERROR(cudaErrorStreamCaptureUnmatched, "not the stream that began the capture")            \
	ERROR(cudaErrorStreamCaptureWrongThread, "not the thread that began the capture")          \
	ERROR(cudaErrorUnknown, "unknown error")

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	sim_call(&cudart_library, FN_cudaGetErrorName, SIM_PLAIN, 0);
	switch (error) {
#define ERROR(name, text)                                                                          \
	case name: return #name;
		ERRORS(ERROR)
#undef ERROR
	default: return "unrecognized error code";
	}
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	sim_call(&cudart_library, FN_cudaGetErrorString, SIM_PLAIN, 0);
	switch (error) {
#define ERROR(name, text)                                                                          \
	case name: return text;
		ERRORS(ERROR)
#undef ERROR
	default: return "unrecognized error code";
	}
}
