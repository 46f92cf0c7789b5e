/*
 * process_embed.c: LIBPYTHON: a program that has no Python in it until it opens one at run time.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		return puts(dlerror()), 1;
	void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
	int (*run)(const char *) = (int (*)(const char *))dlsym(library, "PyRun_SimpleString");
	int (*finalize)(void) = (int (*)(void))dlsym(library, "Py_FinalizeEx");

	initialize(0);
	run("def leaf(): pass\nfor i in range(100): leaf()\nprint('embedded')");
	return finalize();
}
