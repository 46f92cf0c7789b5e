/*
 * cuda_missing.c: calls a function that the loaded runtime lacks. Without tare such a program does
 * not even start; with it the call has to fail, not to crash.
 */
#include <errno.h>
#include <stdio.h>

#include "cuda_prototypes.h"

int main(void)
{
	errno = 33;
	printf("%d ", cudaDeviceSynchronize());
	printf("%d ", cudaMemcpyPeer(NULL, 0, NULL, 0, 0));
	printf("%d ", cudaMemcpyPeer(NULL, 0, NULL, 0, 0));
	printf("%d %d\n", cudaDeviceSynchronize(), errno);
	return 0;
}
