/*
 * process_ledger.h: whose time is the process's.
 *
 * For walk.c. The process's account follows one thread at a time, the leader: the one that launched work
 * last (before any launch: that called an operator last), and the main thread while the leader has
 * nothing open. So threads that run at once are never added up. While a thread waits in backward(), its
 * account takes the lines of the autograd thread that works for it; what is idle there is "other".
 */
#pragma once

#include "analyzer/model.h"

/* A thread launches work (or, `launch` false, calls an operator) at `now`. */
void process_lead(struct model *model, struct model_thread *thread, bool launch, uint64_t now);

/* The leader has nothing open any more. */
void process_leader_idle(struct model *model, uint64_t now);

/* `worker` begins a backward node that `maker`'s forward pass made. */
void process_join(struct model *model, struct model_thread *maker, struct model_thread *worker,
		  uint64_t now);

/* Something happens on a thread that was waiting in backward(). */
void process_part(struct model *model, struct model_thread *thread, uint64_t now);

/* Brings the process's account up to `now`. */
void process_settle(struct model *model, uint64_t now);

/* The main thread's outermost frame ends: the program proper does, and the interpreter's own end begins. */
void process_program_ended(struct model *model, uint64_t began, uint64_t now);

/* Accounts for a thread's time up to `now`, in `slot`. walk.c */
void thread_charge(struct model *model, struct model_thread *thread, uint32_t slot, uint64_t now);
