/* calltree.c: see calltree.h. */
#include "analyzer/calltree.h"

#include <stdlib.h>

#include "analyzer/memory.h"
#include "traces/schema.h"

static uint32_t new_node(struct call_tree *tree, struct tree_node node)
{
	memory_grow(tree->nodes, tree->count, tree->room);
	tree->nodes[tree->count] = node;
	return tree->count++;
}

void call_tree_start(struct call_tree *tree)
{
	for (uint32_t i = TREE_NONE; i <= TREE_OTHER; i++)
		new_node(tree, (struct tree_node){
				       .parent = i == TREE_OTHER ? TREE_ROOT : TREE_NONE,
				       .kind = TREE_KIND_NONE,
				       .target = i,
			       });
}

void call_tree_free(struct call_tree *tree)
{
	free(tree->nodes);
	hash_free(&tree->children);
	*tree = (struct call_tree){ 0 };
}

/* The nearest of enough equal calls around, for a frame that recurses; 0: not folded. */
static uint32_t fold_target(const struct call_tree *tree, uint32_t parent, unsigned kind,
			    uint32_t id, uint32_t code, uint32_t site, bool fold)
{
	uint32_t nearest = 0;
	unsigned repeats = 0;

	if (kind != TRACE_FRAME)
		return 0;
	for (uint32_t i = parent; i > TREE_OTHER; i = tree->nodes[i].parent) {
		const struct tree_node *node = &tree->nodes[i];

		if (fold && node->kind == kind && node->id == id)
			return i;
		if (!tree_node_is(node, node->parent, kind, id, code, site))
			continue;
		if (!nearest)
			nearest = i;
		if (++repeats == TREE_REPEATS_MAX)
			return nearest;
	}
	return 0;
}

uint32_t call_tree_find(struct call_tree *tree, uint32_t parent, unsigned kind, uint32_t id,
			uint32_t code, uint32_t site, uint32_t index, bool fold)
{
	uint64_t mixed = hash_mix((uint64_t)parent << 32 | id,
				  (uint64_t)code << 40 ^ (uint64_t)kind << 32 ^ site);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), probe = hash, found;

	if (parent == TREE_OTHER)
		return TREE_OTHER;
	while ((found = hash_next(&tree->children, hash, &probe)))
		if (tree_node_is(&tree->nodes[found], parent, kind, id, code, site))
			return found;
	if (tree->count >= TREE_NODES_MAX || tree->nodes[parent].depth >= TREE_DEPTH_MAX)
		return TREE_OTHER;

	uint32_t target = fold_target(tree, parent, kind, id, code, site, fold);
	found = new_node(tree, (struct tree_node){
				       .parent = parent,
				       .id = id,
				       .code = code,
				       .site = site,
				       .kind = (uint8_t)kind,
				       .depth = (uint16_t)(tree->nodes[parent].depth + 1),
				       .index = index,
				       .target = target ? target : tree->count,
			       });
	hash_add(&tree->children, hash, found);
	return found;
}
