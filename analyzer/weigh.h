/*
 * weigh.h: puts tare's own weight where an event says that it was spent. For walk.c alone.
 */
#pragma once

#include "analyzer/model.h"

static inline void add_weight(struct model_thread *thread, uint32_t slot, uint32_t weight)
{
	thread->account.weight[slot] += weight;
	thread->weight += weight;
}

/* Of an event that opens a span: what comes before its time. The rest when the span is there. */
static inline void weigh_before(struct model *model, struct model_thread *thread, unsigned rate,
				uint32_t apart)
{
	thread->apart = (uint16_t)apart;
	thread->rate = (uint8_t)rate;
	add_weight(thread, thread->stack[thread->top].slot,
		   weight_outside(&model->weights.rates[rate], apart));
}

/* A call as `node` of the tree says. The thread is accounted for up to it. */
static inline void weigh_enter(struct model *model, struct model_thread *thread, uint32_t node,
			       unsigned code)
{
	uint64_t *last = &model->tree.nodes[node].last, now = thread->last;
	uint64_t step = now > *last ? now - *last : 0;

	*last = now;
	weigh_before(model, thread, model->weights.events[code],
		     weight_apart(&model->weights, false, step));
}

static inline uint32_t frame_apart(const struct model *model, struct model_thread *thread)
{
	uint64_t step = thread->last - thread->last_frame;

	thread->last_frame = thread->last;
	return weight_apart(&model->weights, true, step);
}

static inline void weigh_frame(struct model *model, struct model_thread *thread,
			       const struct def_code *code, uint32_t distance)
{
	bool generator = code->flags & CODE_GENERATOR_FLAGS;

	weigh_before(model, thread,
		     model->weights.frames[generator][distance & (WEIGHT_DISTANCES - 1)],
		     frame_apart(model, thread));
}

/* The end of the innermost span: what is inside. Returns what is to be added around it. */
static inline uint32_t weigh_leave(struct model *model, struct model_thread *thread)
{
	const struct span *span = &thread->stack[thread->top];
	const struct weight_rate *rate = &model->weights.rates[span->rate];

	uint32_t apart = span->kind == TRACE_FRAME ? frame_apart(model, thread) : span->apart;
	uint32_t inside = weight_inside(rate, apart);
	uint32_t outside = weight_outside(rate, apart);

	thread->account.weight[span->slot] += inside;
	thread->weight += inside + outside;
	return outside;
}

static inline void weigh_mark(struct model *model, struct model_thread *thread)
{
	add_weight(thread, thread->stack[thread->top].slot,
		   model->weights.rates[model->weights.mark].outside);
}

/* A span of tare's own ends: in Python code it held the GIL. */
static inline void weigh_tare(struct model_thread *thread, uint64_t duration)
{
	thread->weight += duration << WEIGHT_BITS;
	if (thread->stack[thread->top - 1].kind == TRACE_FRAME)
		thread->python_tare += duration << WEIGHT_BITS;
}

static inline uint64_t python_weight(const struct model_thread *thread)
{
	return thread->python_tare + thread->account.weight[LINE_python_user] +
	       thread->account.weight[LINE_python_library];
}

/*
 * What other threads' Python code cost more since this one's last event, this one waited for too where it
 * runs Python itself: only one of them has the GIL. Returns what weigh_batch wants.
 */
static inline uint64_t weigh_others(struct model *model, struct model_thread *thread, uint64_t now)
{
	const struct span *top = &thread->stack[thread->top];
	uint64_t weight = model->python_weight - thread->python_seen;
	uint64_t step = now > thread->last ? (now - thread->last) << WEIGHT_BITS : 0;

	if (__builtin_expect(weight && top->kind == TRACE_FRAME, 0)) {
		weight = weight < step ? weight : step;
		thread->account.weight[top->slot] += weight;
		thread->weight += weight;
	}
	return python_weight(thread);
}

/* After a batch of the thread's events. */
static inline void weigh_batch(struct model *model, struct model_thread *thread, uint64_t before)
{
	model->python_weight += python_weight(thread) - before;
	thread->python_seen = model->python_weight;
}
