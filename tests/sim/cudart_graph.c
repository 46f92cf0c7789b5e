/*
 * Graphs as objects: what has no per-thread form. Only captured graphs hold work; the functions
 * that build a graph node by node are not modelled.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "cudart.h"

EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned int flags)
{
	(void)flags;
	ENTER(cudaGraphCreate);
	*out = (cudaGraph_t)sim_graph_create();
	return result(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	ENTER(cudaGraphDestroy);
	if (!graph)
		return result(cudaErrorInvalidValue);
	sim_graph_destroy((struct sim_graph *)graph);
	return cudaSuccess;
}

EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	ENTER(cudaGraphGetNodes);
	if (!graph)
		return result(cudaErrorInvalidValue);
	size_t have = sim_graph_nodes((struct sim_graph *)graph, (void **)nodes, *count);
	if (!nodes || *count > have)
		*count = have;
	return cudaSuccess;
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph)
{
	if (!graph)
		return result(cudaErrorInvalidValue);
	*exec = (cudaGraphExec_t)sim_graph_instantiate((struct sim_graph *)graph);
	return result(*exec ? cudaSuccess : cudaErrorMemoryAllocation);
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
					unsigned long long flags)
{
	(void)flags;
	ENTER(cudaGraphInstantiate);
	return instantiate(exec, graph);
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
						 unsigned long long flags)
{
	(void)flags;
	ENTER(cudaGraphInstantiateWithFlags);
	return instantiate(exec, graph);
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	ENTER(cudaGraphExecDestroy);
	if (!exec)
		return result(cudaErrorInvalidValue);
	sim_exec_destroy((struct sim_exec *)exec);
	return cudaSuccess;
}

EXPORT cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
				       cudaGraphExecUpdateResultInfo *info)
{
	ENTER(cudaGraphExecUpdate);
	if (!exec || !graph)
		return result(cudaErrorInvalidValue);
	*info = (cudaGraphExecUpdateResultInfo){ .result = cudaGraphExecUpdateSuccess };
	return result(sim_exec_update((struct sim_exec *)exec, (struct sim_graph *)graph));
}

#if SIM_CUDA == 12
EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *list,
						size_t *count)
#else
EXPORT cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *list,
						cudaGraphEdgeData *edges, size_t *count)
#endif
{
	(void)node;
	(void)list;
#if SIM_CUDA != 12
	(void)edges;
#endif
	ENTER(cudaGraphNodeGetDependencies);
	*count = 0;
	return cudaSuccess;
}

/* ---- objects that live as long as the graphs that hold them ---- */

struct user_object {
	_Atomic unsigned references;
	cudaHostFn_t destroy;
	void *object;
};

static void user_object_drop(void *arg)
{
	struct user_object *o = arg;

	if (atomic_fetch_sub(&o->references, 1) > 1)
		return;
	o->destroy(o->object);
	free(o);
}

EXPORT cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *object, cudaHostFn_t destroy,
					unsigned int references, unsigned int flags)
{
	(void)flags;
	ENTER(cudaUserObjectCreate);
	struct user_object *o = malloc(sizeof(*o));
	if (!o)
		return result(cudaErrorMemoryAllocation);
	*o = (struct user_object){ references, destroy, object };
	*out = (cudaUserObject_t)o;
	return cudaSuccess;
}

EXPORT cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	ENTER(cudaUserObjectRetain);
	atomic_fetch_add(&((struct user_object *)object)->references, count);
	return cudaSuccess;
}

EXPORT cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	ENTER(cudaUserObjectRelease);
	while (count--)
		user_object_drop(object);
	return cudaSuccess;
}

EXPORT cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
					     unsigned int count, unsigned int flags)
{
	ENTER(cudaGraphRetainUserObject);
	if (!(flags & cudaGraphUserObjectMove))
		atomic_fetch_add(&((struct user_object *)object)->references, count);
	while (count--)
		sim_graph_keep((struct sim_graph *)graph, user_object_drop, object);
	return cudaSuccess;
}
