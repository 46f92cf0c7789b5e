/* calibrate_program.c: the text of calibrate.py as part of the command. See calibrate.h. */
#include "analyzer/calibrate.h"

__asm__(".section .rodata\n"
	".global calibrate_program\n"
	".hidden calibrate_program\n"
	"calibrate_program: .incbin \"analyzer/calibrate.py\"\n"
	".byte 0\n"
	".previous\n");
