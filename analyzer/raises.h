/*
 * raises.h: exceptions that left a Python function: who caught them, in which loop, what the functions
 * had taken that they left.
 *
 * For walk.c, which tells of them, and advice.c. An exception that passes through several functions counts once, by
 * the outermost of them. How a `for` loop's own iterator ends is no such thing, nor is a generator that is closed.
 */
#pragma once

#include <stdint.h>

#include "analyzer/hash.h"

#define RAISES_MAX (1u << 16)

struct model;
struct model_thread;
struct span;

struct raise_row {
	uint32_t code, site; /* the user's call that did not return */
	uint32_t loop;       /* a node; or below LOOP_FIRST */
	uint64_t count, units;
};

struct raises {
	struct raise_row *rows; /* from 1 */
	uint32_t count, room;
	struct hash_table index;
};

/* `frame` has just been left by an exception, and is off the thread's stack. */
void raises_add(struct model *model, struct model_thread *thread, const struct span *frame,
		uint64_t now);
void raises_free(struct raises *raises);
