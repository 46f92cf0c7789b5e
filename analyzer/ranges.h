/*
 * ranges.h: the program's own ranges, which need not nest with spans. For walk.c; what they came to is in
 * model->ranges.
 */
#pragma once

#include "analyzer/model.h"

/* `name`: of the trace. */
void range_begin(struct model *model, struct model_thread *thread, uint64_t name, uint64_t now);
/* The newest one of the thread ends. */
void range_end(struct model *model, struct model_thread *thread, uint64_t now);
