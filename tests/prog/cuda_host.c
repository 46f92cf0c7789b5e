/*
 * cuda_host.c: opens plugins RTLD_LOCAL, as Python does its extensions, and runs each.
 *
 *   cuda_host PLUGIN COUNT [PLUGIN COUNT]...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 1; i + 1 < argc; i += 2) {
			void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
			int (*run)(int) = plugin ? (int (*)(int))dlsym(plugin, "plugin_run") : NULL;

			if (!run) {
				fprintf(stderr, "%s\n", dlerror());
				return 1;
			}
			printf("%d\n", run(atoi(argv[i + 1])));
		}
	}
	return 0;
}
