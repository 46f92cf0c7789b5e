/*
 * context.h: what each call of a top operator took, and which of its surroundings belong to it.
 *
 * For walk.c, which tells it of spans; samples go into the operator table.
 *
 * Called from Python an operator is in a section: python is the time since the previous child of that
 * frame ended, framework the section without the calls below. A section with several top operators is
 * cut where the next one begins; python belongs to the first. Outside of sections an operator goes to
 * the end of the last call or section seen in it, a lower bound; its framework is unknown where there was
 * none, since its end is not recorded. What is called where no operator is open is a row
 * of its own. Backward nodes are like operators; operators in Python that a node runs are their own.
 */
#pragma once

#include "analyzer/model.h"

/*
 * All before the span is pushed, with the thread's time accounted for up to `now`. `node`: of the call
 * tree. They return the flags that the span gets.
 */
unsigned context_section(struct model *model, struct model_thread *thread, uint32_t node,
			 uint64_t now);
unsigned context_operator(struct model *model, struct model_thread *thread, uint32_t node,
			  uint32_t op, bool loose, uint64_t now);
unsigned context_node(struct model *model, struct model_thread *thread, uint32_t node,
		      uint32_t type, uint32_t torch_thread, uint64_t sequence, uint64_t now);
unsigned context_call(struct model *model, struct model_thread *thread, uint32_t node,
		      uint32_t function, uint64_t now);

/* A call ended, of `class` (0: of none) and `duration`. */
void context_call_ended(struct model_thread *thread, uint32_t class, uint64_t duration,
			bool launch);

/* The span that the innermost context began with is over. `known`: so is when. */
void context_close(struct model *model, struct model_thread *thread, bool known);

/* The row of the operator table that what happens now belongs to; 0: none. */
uint32_t context_row(struct model *model, struct model_thread *thread);

/* Events were lost, until `now`: what is open has no known times. */
void context_lost(struct model_thread *thread, uint64_t now);

/* Autograd nodes were made by the operator that runs. */
void context_made(struct model *model, struct model_thread *thread, uint64_t sequence,
		  uint64_t count);
