/*
 * What is done to a stream other than giving it work: waiting, asking, events, capture, and
 * allocation in stream order. Compiled twice, see cudart.h.
 */
#include <dlfcn.h>
#include "cudart.h"

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	ENTER(cudaStreamSynchronize);
	STREAM(s, stream);
	return result(sim_stream_synchronize(s));
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	ENTER(cudaStreamQuery);
	STREAM(s, stream);
	return result(sim_stream_query(s));
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	(void)flags;
	ENTER(cudaStreamWaitEvent);
	STREAM(s, stream);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_stream_wait_event(s, (struct sim_event *)event));
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	ENTER(cudaEventRecord);
	STREAM(s, stream);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_record((struct sim_event *)event, s));
}

EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
					    unsigned int flags)
{
	(void)flags;
	ENTER(cudaEventRecordWithFlags);
	STREAM(s, stream);
	if (!event)
		return result(cudaErrorInvalidResourceHandle);
	return result(sim_event_record((struct sim_event *)event, s));
}

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	struct sim_stream_info info;

	ENTER(cudaStreamGetPriority);
	STREAM(s, stream);
	sim_stream_info(s, &info);
	*priority = info.priority;
	return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	struct sim_stream_info info;

	ENTER(cudaStreamGetFlags);
	STREAM(s, stream);
	sim_stream_info(s, &info);
	*flags = info.nonblocking ? cudaStreamNonBlocking : cudaStreamDefault;
	return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	struct sim_stream_info info;

	ENTER(cudaStreamGetId);
	STREAM(s, stream);
	sim_stream_info(s, &info);
	*id = info.id;
	return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	struct sim_stream_info info;

	ENTER(cudaStreamGetDevice);
	STREAM(s, stream);
	sim_stream_info(s, &info);
	*device = info.device;
	return cudaSuccess;
}

EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *p, size_t length,
					    unsigned int flags)
{
	(void)p;
	(void)length;
	(void)flags;
	ENTER(cudaStreamAttachMemAsync);
	STREAM(s, stream);
	return cudaSuccess;
}

/* ---- capture ---- */

EXPORT cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	ENTER(cudaStreamBeginCapture);
	STREAM(s, stream);
	return result(sim_capture_begin(s, (enum sim_mode)mode, NULL));
}

EXPORT cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
						 const cudaGraphNode_t *dependencies,
						 const cudaGraphEdgeData *edges, size_t count,
						 enum cudaStreamCaptureMode mode)
{
	(void)dependencies;
	(void)edges;
	(void)count;
	ENTER(cudaStreamBeginCaptureToGraph);
	STREAM(s, stream);
	return result(sim_capture_begin(s, (enum sim_mode)mode, (struct sim_graph *)graph));
}

EXPORT cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	ENTER(cudaStreamEndCapture);
	STREAM(s, stream);
	return result(sim_capture_end(s, (struct sim_graph **)graph));
}

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	unsigned long long id;
	struct sim_graph *graph;

	ENTER(cudaStreamIsCapturing);
	STREAM(s, stream);
	*status = (enum cudaStreamCaptureStatus)sim_capture_info(s, &id, &graph);
	return cudaSuccess;
}

/* The nodes that the next one would depend on are not kept: none is reported. */
static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				unsigned long long *id, cudaGraph_t *graph,
				const cudaGraphNode_t **dependencies, size_t *count)
{
	unsigned long long capture_id = 0;
	struct sim_graph *capture_graph = NULL;

	STREAM(s, stream);
	*status = (enum cudaStreamCaptureStatus)sim_capture_info(s, &capture_id, &capture_graph);
	if (id)
		*id = capture_id;
	if (graph)
		*graph = (cudaGraph_t)capture_graph;
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
	return cudaSuccess;
}

#if SIM_CUDA == 12
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
					    enum cudaStreamCaptureStatus *status,
					    unsigned long long *id, cudaGraph_t *graph,
					    const cudaGraphNode_t **dependencies, size_t *count)
{
	ENTER(cudaStreamGetCaptureInfo);
	return capture_info(stream, status, id, graph, dependencies, count);
}

EXPORT cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream,
					       enum cudaStreamCaptureStatus *status,
					       unsigned long long *id, cudaGraph_t *graph,
					       const cudaGraphNode_t **dependencies,
					       const cudaGraphEdgeData **edges, size_t *count)
{
	ENTER(cudaStreamGetCaptureInfo_v3);
	if (edges)
		*edges = NULL;
	return capture_info(stream, status, id, graph, dependencies, count);
}

EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
						       cudaGraphNode_t *dependencies, size_t count,
						       unsigned int flags)
{
	(void)dependencies;
	(void)count;
	(void)flags;
	ENTER(cudaStreamUpdateCaptureDependencies);
	STREAM(s, stream);
	return cudaSuccess;
}
#else
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
					    enum cudaStreamCaptureStatus *status,
					    unsigned long long *id, cudaGraph_t *graph,
					    const cudaGraphNode_t **dependencies,
					    const cudaGraphEdgeData **edges, size_t *count)
{
	ENTER(cudaStreamGetCaptureInfo);
	if (edges)
		*edges = NULL;
	return capture_info(stream, status, id, graph, dependencies, count);
}

EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
						       cudaGraphNode_t *dependencies,
						       const cudaGraphEdgeData *edges, size_t count,
						       unsigned int flags)
{
	(void)dependencies;
	(void)edges;
	(void)count;
	(void)flags;
	ENTER(cudaStreamUpdateCaptureDependencies);
	STREAM(s, stream);
	return cudaSuccess;
}
#endif

/* ---- memory in stream order: there at once, gone at once ---- */

EXPORT cudaError_t cudaMallocAsync(void **out, size_t size, cudaStream_t stream)
{
	ENTER(cudaMallocAsync);
	STREAM(s, stream);
	return result(sim_alloc(SIM_MEM_DEVICE, size, 0, out));
}

EXPORT cudaError_t cudaMallocFromPoolAsync(void **out, size_t size, cudaMemPool_t pool,
					   cudaStream_t stream)
{
	(void)pool;
	ENTER(cudaMallocFromPoolAsync);
	STREAM(s, stream);
	return result(sim_alloc(SIM_MEM_DEVICE, size, 0, out));
}

EXPORT cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
	ENTER(cudaFreeAsync);
	STREAM(s, stream);
	return result(sim_free(SIM_MEM_DEVICE, p, false));
}

/* ---- the driver's functions, as far as the simulated libcuda has them ---- */

static cudaError_t entry_point(const char *name, void **out,
			       enum cudaDriverEntryPointQueryResult *status)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	*out = driver ? dlsym(driver, name) : NULL;
	if (driver)
		dlclose(driver);
	if (status)
		*status = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return result(*out || status ? cudaSuccess : cudaErrorSymbolNotFound);
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
					   enum cudaDriverEntryPointQueryResult *status)
{
	(void)flags;
	ENTER(cudaGetDriverEntryPoint);
	return entry_point(symbol, out, status);
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
						    unsigned int version, unsigned long long flags,
						    enum cudaDriverEntryPointQueryResult *status)
{
	(void)version;
	(void)flags;
	ENTER(cudaGetDriverEntryPointByVersion);
	return entry_point(symbol, out, status);
}
