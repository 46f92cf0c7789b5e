/*
 * pyhooks.h: what the files of pyhooks/ have from each other, beyond python.h and code.h.
 *
 * What other folders use of it is in preload/runtime.h and preload/sources.def.
 */
#pragma once

#include "preload/runtime.h"
#include "pyhooks/python.h"

/*
 * tare_thread.frame and .code are what the trace's reader knows: the frame of the innermost FRAME, and
 * the id of its code. With this bit set in `frame`, `code` is what AT said instead.
 */
#define FRAME_IS_NOT_CODE ((uintptr_t)1)

/* Installs the frame hook. GIL held, once. Returns NULL, or why it is not installed. */
const char *eval_install(void);

/* tare_python_site. */
uint64_t site_now(struct tare_thread *thread, void *python_thread, bool gil_held);

/* The same for a frame that runs on `python_thread`, or NULL, and is not thread->frame. */
uint64_t site_of_frame(struct tare_thread *thread, void *python_thread, const void *frame,
		       bool gil_held);
