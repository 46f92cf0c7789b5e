/*
 * modules.h: the loaded files that addresses lie in, as MODULE records.
 *
 * For stacks.c, by one thread at a time. Asks the kernel, not the dynamic linker, whose lock a thread
 * may hold that waits for this one.
 */
#pragma once

#include "traces/writer.h"

/* Finds and defines the files of those addresses whose file is not known. They must stay loaded. */
void modules_learn(struct trace_buffer *buffer, const uintptr_t *addresses, uint32_t count);

/* The id of its MODULE record, and what is to be subtracted; 0 and 0 where it is in none. */
uint32_t modules_find(uintptr_t address, uint64_t *bias_p);

void modules_forget(void);
