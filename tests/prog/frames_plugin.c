/* A library for frames_native.py: CUDA calls from Python's threads, and from one that has no Python. */
#include <pthread.h>

int cudaDeviceSynchronize(void);

int synchronize(void)
{
	return cudaDeviceSynchronize();
}

static void *run(void *function)
{
	((void (*)(void))function)();
	return NULL;
}

/* Calls `function` on a thread of its own. */
void call_on_thread(void (*function)(void))
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, (void *)function);
	pthread_join(thread, NULL);
}

void synchronize_on_thread(void)
{
	call_on_thread((void (*)(void))synchronize);
}
