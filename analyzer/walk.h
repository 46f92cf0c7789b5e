/* walk.h: follows the events of all threads, in the order of time. For model.c. */
#pragma once

#include "analyzer/model.h"

void walk_batch(struct model *model, struct trace_reader *reader, const struct trace_batch *batch);

/* All events were read: accounts for everything up to model->end. */
void walk_finish(struct model *model);
