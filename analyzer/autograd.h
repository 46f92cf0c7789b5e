/*
 * autograd.h: which forward operator made a backward node.
 *
 * For analyzer/'s model. Nodes are told apart by the thread that made them and its sequence number. A
 * thread counts up, so what it made is a list in order; the newest AUTOGRAD_MADE_MAX are kept of each.
 */
#pragma once

#include <stdint.h>

#define AUTOGRAD_MADE_MAX (1u << 18)

struct autograd_made {
	uint64_t sequence;
	uint32_t count, row; /* row of the operator table */
};

struct autograd_thread {
	struct autograd_made *made; /* a ring, once it is full */
	uint32_t start, count, room;
	uint32_t last; /* found there last, counted from start: the next is near */
};

void autograd_add(struct autograd_thread *thread, uint64_t sequence, uint64_t count, uint32_t row);

/* The operator that made it; 0: not known. */
uint32_t autograd_find(struct autograd_thread *thread, uint64_t sequence);

void autograd_free(struct autograd_thread *thread);
