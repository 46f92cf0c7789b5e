/*
 * launch.h: runs a program as if it had been started without us, and finds what it is to be run with.
 *
 * For cmd_record.c and cmd_lib.c.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "analyzer/watch.h"

/* The path of libtare.so, beside this command or installed with it; free it. NULL, and said, if none. */
char *launch_find_library(void);

/*
 * Runs `argv` with this process's environment, and waits. Signals that are sent to us alone are passed
 * on; those of the terminal reach the program by themselves. Returns the exit status as a shell tells
 * it: 128 + n after signal n. Where it cannot be run: 127 (not found) or 126, and *error_p is an errno.
 * Meanwhile `watch` looks for Pythons that it does not reach.
 */
int launch_run(char **argv, struct watch *watch, int *error_p);

/*
 * Why LD_PRELOAD would not reach `command`, which is looked up in PATH as execvp does, or the interpreter
 * that a script names: "FILE is linked statically, ..." and what to do. Free it; NULL: nothing speaks
 * against it.
 */
char *launch_obstacle(const char *command);

/* As execvp finds it. False: not found. */
bool launch_find_command(const char *command, char path[PATH_MAX]);
