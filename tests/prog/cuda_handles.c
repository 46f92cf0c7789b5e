/*
 * cuda_handles.c: looks runtime functions up by handle, as ctypes and many bindings do, and prints
 * which file answers.
 *
 *   cuda_handles LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void print(const char *how, void *function)
{
	Dl_info info;

	if (!function)
		printf("%s: none\n", how);
	else if (dladdr(function, &info))
		printf("%s: %s\n", how, strrchr(info.dli_fname, '/') + 1);
}

int main(int argc, char **argv)
{
	void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*allocate)(void **, size_t) =
		handle ? (int (*)(void **, size_t))dlsym(handle, "cudaMalloc") : NULL;
	void *p;

	if (!allocate)
		return 1;
	printf("%d\n", allocate(&p, 64));
	print("handle", dlsym(handle, "cudaMalloc"));
	print("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
	print("next", dlsym(RTLD_NEXT, "cudaMalloc"));
	print("program", dlsym(dlopen(NULL, RTLD_NOW), "cudaMalloc"));
	dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	print("default", dlsym(RTLD_DEFAULT, "cudaMalloc"));
	print("unknown", dlsym(RTLD_DEFAULT, "cudaMemcpyOfTheFuture"));
	return 0;
}
