/*
 * calltree.h: the distinct paths of spans, each a node: how often it was taken, its own time.
 *
 * For analyzer/'s model. Grows with the paths, not with the trace: recursion that repeats the same call
 * is folded into one of the nodes around, and beyond a limit all new paths are one node, TREE_OTHER.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/hash.h"

#define TREE_NODES_MAX   (1u << 19)
#define TREE_REPEATS_MAX 4 /* the same call inside itself: more are folded */
#define TREE_DEPTH_MAX   2000

enum { TREE_NONE, TREE_ROOT, TREE_OTHER };

#define TREE_KIND_NONE 0xff /* of TREE_NONE, TREE_ROOT, TREE_OTHER */

/* What is looked at for each event comes first; the size is a power of two. */
struct tree_node {
	uint64_t count, self; /* self: clock units */
	/* What tells it from the other children of its parent: an event and its ids as in the trace. */
	uint32_t parent, id, code, site;
	uint8_t kind; /* enum trace_event_code */
	uint16_t depth;
	uint32_t index;            /* of id's definition */
	uint32_t target;           /* itself, or the node that it is folded into */
	uint32_t successor, first; /* guesses: the sibling that follows, its first child */
	uint32_t row;              /* of the operator table that it was last counted in */
	uint64_t last;             /* when it was entered the last time; 0: never */
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct tree_node) == 64, "as it says");

struct call_tree {
	struct tree_node *nodes;
	uint32_t count, room;
	struct hash_table children;
};

void call_tree_start(struct call_tree *tree);
void call_tree_free(struct call_tree *tree);

/*
 * The child of `parent` with these ids, made where it is new; its `target` is the node to count in. A
 * full tree gives TREE_OTHER. `index` and `fold` are only read for a new one. `fold`: the same code around
 * is folded into, wherever it was called from: imports nest as deep as modules depend on each other.
 */
uint32_t call_tree_find(struct call_tree *tree, uint32_t parent, unsigned kind, uint32_t id,
			uint32_t code, uint32_t site, uint32_t index, bool fold);

static inline __attribute__((always_inline)) int tree_node_is(const struct tree_node *node,
							      uint32_t parent, unsigned kind,
							      uint32_t id, uint32_t code,
							      uint32_t site)
{
	return !((node->parent ^ parent) | (node->id ^ id) | (node->code ^ code) |
		 (node->site ^ site) | (node->kind ^ kind));
}
