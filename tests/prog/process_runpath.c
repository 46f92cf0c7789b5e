/*
 * process_runpath.c: opens a library that only this program's own RUNPATH finds, and one that nobody
 * finds.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	puts(dlopen("libtare_runpath_leaf.so", RTLD_NOW) ? "found" : dlerror());
	puts(dlopen("libtare_no_such.so", RTLD_NOW) ? "found" : dlerror());
	return 0;
}
