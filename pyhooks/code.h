/*
 * code.h: the ids of code objects.
 *
 * For pyhooks/ alone. An id hangs on its code object by co_extra, so it goes when the object does,
 * and is never used for another.
 */
#pragma once

#include "preload/runtime.h"
#include "pyhooks/python.h"

/* Id of `code` if this trace has its definition; else 0. GIL held, or `code` runs in this thread. */
static inline uint32_t code_known(const void *code)
{
	uint64_t extra = python_code_extra(code); /* generation << 32 | id */

	return tare_likely(extra >> 32 == tare_generation) ? (uint32_t)extra : 0;
}

/*
 * Gives `code` an id and writes its CODE and LINES records, as a span of tare's own. GIL held, between
 * tare_begin and tare_end. Runs no Python code, keeps an exception that is set. Returns 0 where it
 * cannot be: not a code object, or one of another interpreter.
 */
TARE_COLD uint32_t code_define(struct tare_thread *thread, void *code);
