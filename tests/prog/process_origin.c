/*
 * process_origin.c: a program in one folder opens a library in another, which opens a third beside itself: by
 * their RUNPATH with $ORIGIN in it, and by $ORIGIN in the name.
 */
#include <dlfcn.h>
#include <stdio.h>

int opens(void);

static void try(const char *name)
{
	puts(dlopen(name, RTLD_NOW) ? "found" : dlerror());
}

int opens(void)
{
	try("libleaf.so");
	try("$ORIGIN/../leaf/libleaf.so");
	return 0;
}

int main(void)
{
	try("libopens.so");
	try("$ORIGIN/../library/libopens.so");
	void *library = dlopen("libopens.so", RTLD_NOW);
	int (*other)(void) = library ? (int (*)(void))dlsym(library, "opens") : NULL;

	return other ? other() : 1;
}
