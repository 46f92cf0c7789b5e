/*
 * cmd_lib.c: `tare lib`: prints the path of libtare.so, for LD_PRELOAD=$(tare lib).
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/launch.h"
#include "analyzer/message.h"
#include "analyzer/options.h"

int cmd_lib(int argc, char **argv)
{
	const struct argp argp = { .doc = "Prints the path of libtare.so, for LD_PRELOAD." };
	int status;

	if (options_parse(&argp, 0, argc, argv, NULL, &status) != 0)
		return status;
	char *path = launch_find_library();
	if (!path)
		return STATUS_WRONG;
	puts(path);
	free(path);
	return STATUS_FINE;
}
