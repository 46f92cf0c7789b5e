/*
 * cupti_types.h: as much of CUPTI's interface as is used here, without NVIDIA's headers.
 *
 * For cupti/ alone. Records are the prefixes that all versions from 11.0 to 13.x have in common: a record's
 * length is never taken from here, cuptiActivityGetNextRecord knows it. tests/test_gpu_types.py compares
 * all of it with the headers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int cupti_result;
#define CUPTI_OK              0
#define CUPTI_NOT_INITIALIZED 15

/* Kinds of records. KIND(number, NAME, needed): without a needed one there is no layer. */
#define CUPTI_KINDS(KIND)                                                                          \
	KIND(10, CONCURRENT_KERNEL, true)                                                          \
	KIND(1, MEMCPY, true)                                                                      \
	KIND(22, MEMCPY2, false)                                                                   \
	KIND(2, MEMSET, true)                                                                      \
	KIND(38, SYNCHRONIZATION, false)                                                           \
	KIND(51, GRAPH_TRACE, false)                                                               \
	KIND(17, OVERHEAD, false)

enum cupti_kind {
#define KIND(number, NAME, needed) CUPTI_##NAME = number,
	CUPTI_KINDS(KIND)
#undef KIND
		CUPTI_KERNEL = 3, /* in place of CONCURRENT_KERNEL on old devices */
};

struct cupti_kernel {
	uint32_t kind, unused[3];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3], static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout[2], padding;
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_config, graph;
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, source_kind, destination_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream;
	uint32_t correlation; /* of MEMCPY; of MEMCPY2 it lies further back */
	uint32_t peer[3], peer_correlation;
};

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
};

struct cupti_synchronization {
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream;
};

struct cupti_graph_trace {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};

struct cupti_overhead {
	uint32_t kind, overhead_kind, object[4];
	uint64_t start, end;
};

enum cupti_domain { CUPTI_DRIVER_API = 1, CUPTI_RUNTIME_API = 2 };
enum { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };
enum { CUPTI_FLUSH_FORCED = 1 };

struct cupti_callback_data {
	int site;
	const char *function;
	const void *parameters;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_number;
	uint64_t *own; /* the same word at the enter and the exit of a call */
	uint32_t correlation;
};

typedef void cupti_callback(void *user, uint32_t domain, uint32_t cbid,
			    const struct cupti_callback_data *data);
typedef void cupti_requested(uint8_t **buffer, size_t *bytes, size_t *records_max);
typedef void cupti_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			     size_t used);
typedef uint64_t cupti_clock(void);

/* FUNCTION(field, name, parameters): what is called of CUPTI. */
#define CUPTI_FUNCTIONS(FUNCTION)                                                                  \
	FUNCTION(version, cuptiGetVersion, (uint32_t *))                                           \
	FUNCTION(error_text, cuptiGetResultString, (cupti_result, const char **))                  \
	FUNCTION(subscribe, cuptiSubscribe, (void **, cupti_callback *, void *))                   \
	FUNCTION(unsubscribe, cuptiUnsubscribe, (void *))                                          \
	FUNCTION(enable_callback, cuptiEnableCallback, (uint32_t, void *, uint32_t, uint32_t))     \
	FUNCTION(callback_name, cuptiGetCallbackName, (uint32_t, uint32_t, const char **))         \
	FUNCTION(register_clock, cuptiActivityRegisterTimestampCallback, (cupti_clock *))          \
	FUNCTION(register_buffers, cuptiActivityRegisterCallbacks,                                 \
		 (cupti_requested *, cupti_completed *))                                           \
	FUNCTION(enable, cuptiActivityEnable, (uint32_t))                                          \
	FUNCTION(disable, cuptiActivityDisable, (uint32_t))                                        \
	FUNCTION(flush, cuptiActivityFlushAll, (uint32_t))                                         \
	FUNCTION(next, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                   \
	FUNCTION(dropped, cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))
