/*
 * process_ledger.h: whose time is the process's.
 *
 * For walk.c. The process's account follows one thread at a time, the leader: the one that launched work
 * last (before any launch: that called an operator last), and the main thread while the leader has
 * nothing open. So threads that run at once are never added up. While a thread waits in backward(), its
 * account takes the lines of the autograd thread that works for it; what is idle there is the hand-over.
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

/*
 * The main thread's outermost frame of the import machinery begins, or ends. After the start-up it has an
 * account of its own.
 */
void process_import(struct model *model, const struct model_thread *thread, uint64_t now);
void process_imported(struct model *model, const struct model_thread *thread, uint64_t began,
		      uint64_t now);

/* What the process's time goes to at present. */
static inline struct account *process_account(struct model *model)
{
	return model->importing && model->leader == model->main ? &model->imports : &model->process;
}

/* At the end: all of the process's time, imports too. */
struct ledger process_ledger_of(struct model *model);

/* The same, of two accounts. */
struct ledger process_ledger_sum(struct model *model, const struct account *account,
				 const struct account *imports);

/* Brings the process's account up to `now`. */
void process_settle(struct model *model, uint64_t now);

/* The trace ends: what is still open goes on to there. */
void process_finish(struct model *model, uint64_t end);

/* The main thread's outermost frame ends: the program proper does, and the interpreter's own end begins. */
void process_program_ended(struct model *model, uint64_t began, uint64_t now);

/* Accounts for a thread's time up to `now`, in `slot`. walk.c */
void thread_charge(struct model *model, struct model_thread *thread, uint32_t slot, uint64_t now);
