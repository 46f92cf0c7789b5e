/*
 * library_host.c [NAME | PLUGIN]...: opens each plugin, and says what it answers; of a name without a
 * slash says whether it is to be found.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strchr(argv[i], '/')) {
			printf("%s %d\n", argv[i], dlsym(RTLD_DEFAULT, argv[i]) != NULL);
			continue;
		}
		void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;

		printf("%d\n", run ? run() : -2);
		if (!run)
			puts(dlerror());
	}
	return 0;
}
