/* Compares cupti_types.h with NVIDIA's headers: compiles where they agree. */
#include <cupti.h>
#include <stddef.h>

#include "cupti/cupti_types.h"

#define SAME(theirs, field, ours, own)                                                             \
	_Static_assert(offsetof(theirs, field) == offsetof(struct ours, own), #theirs "." #field)

#define KERNEL(version)                                                                            \
	SAME(CUpti_ActivityKernel##version, start, cupti_kernel, start);                           \
	SAME(CUpti_ActivityKernel##version, end, cupti_kernel, end);                               \
	SAME(CUpti_ActivityKernel##version, deviceId, cupti_kernel, device);                       \
	SAME(CUpti_ActivityKernel##version, contextId, cupti_kernel, context);                     \
	SAME(CUpti_ActivityKernel##version, streamId, cupti_kernel, stream);                       \
	SAME(CUpti_ActivityKernel##version, correlationId, cupti_kernel, correlation);             \
	SAME(CUpti_ActivityKernel##version, name, cupti_kernel, name);                             \
	SAME(CUpti_ActivityKernel##version, graphId, cupti_kernel, graph)
KERNEL(5);
KERNEL(6);
KERNEL(7);
KERNEL(8);
KERNEL(9);
KERNEL(10);

#define MEMCPY(theirs)                                                                             \
	SAME(theirs, copyKind, cupti_memcpy, copy_kind);                                           \
	SAME(theirs, srcKind, cupti_memcpy, source_kind);                                          \
	SAME(theirs, dstKind, cupti_memcpy, destination_kind);                                     \
	SAME(theirs, bytes, cupti_memcpy, bytes);                                                  \
	SAME(theirs, start, cupti_memcpy, start);                                                  \
	SAME(theirs, deviceId, cupti_memcpy, device);                                              \
	SAME(theirs, streamId, cupti_memcpy, stream)
MEMCPY(CUpti_ActivityMemcpy3);
MEMCPY(CUpti_ActivityMemcpy6);
MEMCPY(CUpti_ActivityMemcpyPtoP4);
SAME(CUpti_ActivityMemcpy3, correlationId, cupti_memcpy, correlation);
SAME(CUpti_ActivityMemcpy6, correlationId, cupti_memcpy, correlation);
SAME(CUpti_ActivityMemcpyPtoP4, correlationId, cupti_memcpy, peer_correlation);

#define MEMSET(theirs)                                                                             \
	SAME(theirs, bytes, cupti_memset, bytes);                                                  \
	SAME(theirs, start, cupti_memset, start);                                                  \
	SAME(theirs, streamId, cupti_memset, stream);                                              \
	SAME(theirs, correlationId, cupti_memset, correlation)
MEMSET(CUpti_ActivityMemset2);
MEMSET(CUpti_ActivityMemset4);

#define GRAPH(theirs)                                                                              \
	SAME(theirs, correlationId, cupti_graph_trace, correlation);                               \
	SAME(theirs, start, cupti_graph_trace, start);                                             \
	SAME(theirs, deviceId, cupti_graph_trace, device);                                         \
	SAME(theirs, graphId, cupti_graph_trace, graph);                                           \
	SAME(theirs, streamId, cupti_graph_trace, stream)
GRAPH(CUpti_ActivityGraphTrace);
GRAPH(CUpti_ActivityGraphTrace2);

#define SYNC(theirs)                                                                               \
	SAME(theirs, type, cupti_synchronization, type);                                           \
	SAME(theirs, start, cupti_synchronization, start);                                         \
	SAME(theirs, correlationId, cupti_synchronization, correlation);                           \
	SAME(theirs, streamId, cupti_synchronization, stream)
SYNC(CUpti_ActivitySynchronization);
SYNC(CUpti_ActivitySynchronization2);

SAME(CUpti_ActivityOverhead, overheadKind, cupti_overhead, overhead_kind);
SAME(CUpti_ActivityOverhead, start, cupti_overhead, start);
SAME(CUpti_ActivityOverhead3, start, cupti_overhead, start);

SAME(CUpti_CallbackData, callbackSite, cupti_callback_data, site);
SAME(CUpti_CallbackData, contextUid, cupti_callback_data, context_number);
SAME(CUpti_CallbackData, correlationData, cupti_callback_data, own);
SAME(CUpti_CallbackData, correlationId, cupti_callback_data, correlation);

#define KIND(number, NAME, needed)                                                                 \
	_Static_assert(CUPTI_ACTIVITY_KIND_##NAME == number, "kind " #NAME);
CUPTI_KINDS(KIND)
#undef KIND
_Static_assert((int)CUPTI_CB_DOMAIN_DRIVER_API == (int)CUPTI_DRIVER_API, "domain");
_Static_assert((int)CUPTI_CB_DOMAIN_RUNTIME_API == (int)CUPTI_RUNTIME_API, "domain");
_Static_assert(CUPTI_API_ENTER == CUPTI_ENTER && CUPTI_API_EXIT == CUPTI_EXIT, "site");
_Static_assert(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED == CUPTI_FLUSH_FORCED, "flag");
_Static_assert(CUPTI_ERROR_NOT_INITIALIZED == CUPTI_NOT_INITIALIZED, "error");
