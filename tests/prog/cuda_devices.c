/*
 * cuda_devices.c: two threads that change their devices. Needs two devices.
 */
#include <pthread.h>
#include <stdio.h>

#include "cuda_prototypes.h"

static void use(int device)
{
	if (cudaSetDevice(device) || cudaDeviceSynchronize())
		printf("device %d failed\n", device);
}

static void *second(void *unused)
{
	use(1);
	use(1);
	return unused;
}

int main(void)
{
	pthread_t thread;

	cudaDeviceSynchronize();
	use(0);
	use(1);
	cudaSetDevice(7); /* there is none: device 1 stays */
	cudaDeviceSynchronize();
	cudaSetDevice(0); /* nothing is done there */
	use(1);
	pthread_create(&thread, NULL, second, NULL);
	pthread_join(thread, NULL);
	use(0);
	puts("done");
	return 0;
}
