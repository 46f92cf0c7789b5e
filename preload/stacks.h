/*
 * stacks.h: native stacks of calls that waited (TARE_STACKS=wait).
 *
 * For hook.c, and for runtime.c and init.c, which end threads and fork. All but stacks_on is to be called
 * INSIDE alone.
 */
#pragma once

#include "preload/runtime.h"

/* Whether stacks are wanted and can be had. */
extern bool stacks_on __attribute__((visibility("hidden")));

/* Finds the unwinder, once a process, where stacks are wanted. Takes the dynamic linker's lock. */
void stacks_set_up(void);

/* A call that took so many clock units has a stack. */
extern uint64_t stacks_least_units __attribute__((visibility("hidden")));

/*
 * The id of the present stack, from the caller of the wrapper outwards; 0: none can be had. `frame`:
 * __builtin_frame_address(0) of the wrapper. *new_p: it was not known, and took some time.
 */
uint32_t stacks_find(struct tare_thread *thread, const void *frame, bool *new_p);

void stacks_thread_end(struct tare_thread *thread);
void stacks_fork_child(void);
