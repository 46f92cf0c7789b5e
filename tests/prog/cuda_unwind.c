/*
 * cuda_unwind.c: a runtime call that is left by other ways than its return: longjmp, and a thread
 * that ends in it, with its clean-up. Built a second time with RUNTIME, as the runtime.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#include "cuda_prototypes.h"

#ifdef RUNTIME

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	(void)stream;
	fn(data);
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	return cudaSuccess;
}

#else

static void jump(void *to)
{
	longjmp(*(jmp_buf *)to, 1);
}

static void clean_up(void *unused)
{
	(void)unused;
	printf("clean-up %d\n", cudaDeviceSynchronize());
}

static void *thread(void *end)
{
	pthread_cleanup_push(clean_up, NULL);
	cudaDeviceSynchronize();
	cudaLaunchHostFunc(NULL, (cudaHostFn_t)end, NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel(void *unused)
{
	(void)unused;
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

int main(void)
{
	void (*const ends[])(void *) = { pthread_exit, cancel };
	pthread_t id;
	jmp_buf here;
	void *result;

	if (!setjmp(here))
		cudaLaunchHostFunc(NULL, jump, &here);
	printf("main %d\n", cudaDeviceSynchronize());
	for (int i = 0; i < 2; i++) {
		pthread_create(&id, NULL, thread, (void *)ends[i]);
		pthread_join(id, &result);
		printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "ended");
	}
	return 0;
}
#endif
