/*
 * nodes.h: what nodes.c and node_type.c share.
 */
#pragma once

#include <stdint.h>

#include "preload/runtime.h"

/* Id of the class of a torch::autograd::Node. Defines it where it is new. node_type.c */
uint32_t node_type(struct tare_thread *thread, const uint64_t *node);
