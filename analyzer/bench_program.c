/* bench_program.c: the text of bench.py as part of the command. See bench.h. */
#include "analyzer/bench.h"

__asm__(".section .rodata\n"
	".global bench_program\n"
	".hidden bench_program\n"
	"bench_program: .incbin \"analyzer/bench.py\"\n"
	".byte 0\n"
	".previous\n");
