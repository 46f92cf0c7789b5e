/*
 * cuda_none.c: a program without CUDA.
 */
#include <stdio.h>

int main(void)
{
	puts("no CUDA here");
	return 3;
}
