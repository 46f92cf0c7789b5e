/*
 * cuda_table.c: calls every function of cuda_hooks.def once with distinct arguments, and prints
 * what each answers. For cuda_fake.c, whose answers depend on all argument bytes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "cuda_prototypes.h"

/* More arguments than any has, in the registers and stack words where each looks for its own. */
typedef cudaError_t anything(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			     uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			     uintptr_t, uintptr_t);

/* Each is a pointer to zeros, and as a count small enough to read that many of them. */
#define BASE    0x200000u
#define BYTES   (32u << 20)
#define WORD(i) (BASE + (i)*0x1010u)

static void call(const char *name, cudaError_t (*function)())
{
	errno = 77;
	cudaError_t answer = ((anything *)function)(WORD(0), WORD(1), WORD(2), WORD(3), WORD(4),
						    WORD(5), WORD(6), WORD(7), WORD(8), WORD(9),
						    WORD(10), WORD(11), WORD(12), WORD(13));

	printf("%s %d%s\n", name, answer, errno == 77 ? "" : " errno changed");
}

int main(void)
{
	if (mmap((void *)(uintptr_t)BASE, BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
		 0) == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (int turn = 0; turn < 3; turn++) {
#define PLAIN(name)            call(#name, (cudaError_t(*)())name);
#define PTSZ(name)             PLAIN(name) PLAIN(name##_ptsz)
#define PTDS(name)             PLAIN(name) PLAIN(name##_ptds)
#define HOOK(name, forms, ...) forms(name)
#define HOOK_DEVICE(name, ...) PLAIN(name)
#include "preload/cuda_hooks.def"
	}
	return 0;
}
