/*
 * origin.h: whose Python code it is: the user's or a library's, told by its file's name.
 *
 * For analyzer/. A user site is the nearest frame whose code is the user's.
 */
#pragma once

#include <stdbool.h>

/*
 * Outside site-packages, dist-packages, the standard library, the interpreter's frozen modules and
 * code that libraries make at run time.
 */
bool origin_is_user(const char *file, const char *name);

/* Part of the interpreter's import machinery. */
bool origin_is_import(const char *file);

/* Runs the program's own code from a loop: a notebook's or shell's cells, an event loop's tasks. */
bool origin_is_runner(const char *file);

/* Parts of a step of PyTorch's: the call of a module, an optimizer's step. */
enum origin_step { STEP_NONE, STEP_MODULE, STEP_OPTIMIZER };
enum origin_step origin_step(const char *file, const char *name);

/*
 * For people: without the folders of the interpreter's libraries ("torch/nn/modules/linear.py"); of the
 * user's own files the last part. Free it.
 */
char *origin_short(const char *file);

/* The dotted name of the module a file holds: "torch.nn.modules.linear", "train". Free it. */
char *origin_module(const char *file);
