/*
 * Launches: kernels, host functions, graphs. Compiled twice, see cudart.h.
 */
#include <stdlib.h>
#include "figures.h"
#include "cudart.h"

static cudaError_t launch(const struct cudart_kernel *kernel, dim3 grid, dim3 block, void **args,
			  cudaStream_t stream)
{
	struct sim_touched touched;

	if (!kernel)
		return result(cudaErrorInvalidDeviceFunction);
	uint64_t threads = (uint64_t)block.x * block.y * block.z;
	if (!threads || threads > SIM_BLOCK_THREADS || !grid.x || !grid.y || !grid.z)
		return result(cudaErrorInvalidConfiguration);
	STREAM(s, stream);
	sim_touched_by(args, kernel_output(kernel), &touched);
	return result(sim_launch(s, kernel_name(kernel), kernel_ns(kernel), &touched));
}

EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream)
{
	(void)shared;
	ENTER(cudaLaunchKernel);
	return launch(kernel_find(func), grid, block, args, stream);
}

EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					       size_t shared, cudaStream_t stream)
{
	(void)shared;
	ENTER(cudaLaunchCooperativeKernel);
	return launch(kernel_find(func), grid, block, args, stream);
}

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
				       void **args)
{
	ENTER(cudaLaunchKernelExC);
	return launch(kernel_find(func), config->gridDim, config->blockDim, args, config->stream);
}

/* No header renames this one. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				      size_t shared, cudaStream_t stream)
{
	(void)shared;
	ENTER(__cudaLaunchKernel);
	return launch(kernel_find(kernel), grid, block, args, stream);
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	struct sim_work work = { .kind = SIM_HOST, .host = { .call = fn, .arg = data } };

	ENTER(cudaLaunchHostFunc);
	STREAM(s, stream);
	return result(sim_submit(s, &work));
}

struct callback {
	cudaStream_t stream;
	cudaStreamCallback_t call;
	void *data;
};

static void callback_run(void *arg)
{
	struct callback c = *(struct callback *)arg;

	free(arg);
	c.call(c.stream, cudaSuccess, c.data);
}

EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void *data,
					 unsigned int flags)
{
	(void)flags;
	ENTER(cudaStreamAddCallback);
	STREAM(s, stream);
	struct callback *c = malloc(sizeof(*c));
	if (!c)
		return result(cudaErrorMemoryAllocation);
	*c = (struct callback){ .stream = stream, .call = call, .data = data };
	return result(sim_submit(s, &(struct sim_work){
					    .kind = SIM_HOST,
					    .host = { .call = callback_run, .arg = c },
				    }));
}

EXPORT cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER(cudaGraphLaunch);
	STREAM(s, stream);
	if (!exec)
		return result(cudaErrorInvalidValue);
	return result(sim_exec_launch((struct sim_exec *)exec, s));
}

EXPORT cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	(void)exec;
	ENTER(cudaGraphUpload);
	STREAM(s, stream);
	return cudaSuccess;
}

EXPORT cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
						  cudaGraphInstantiateParams *params)
{
	ENTER(cudaGraphInstantiateWithParams);
	if (!graph)
		return result(cudaErrorInvalidValue);
	*exec = (cudaGraphExec_t)sim_graph_instantiate((struct sim_graph *)graph);
	params->result_out = *exec ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
	params->errNode_out = NULL;
	return result(*exec ? cudaSuccess : cudaErrorMemoryAllocation);
}
