/* process_ledger.c: see process_ledger.h. */
#include "analyzer/process_ledger.h"

static const unsigned watched_lines[2] = { LINE_framework, LINE_gil };

static void charge_top(struct model *model, struct model_thread *thread, uint64_t now)
{
	thread_charge(model, thread, thread->stack[thread->top].slot, now);
}

/* Takes over what the worker did since the mark. */
static void take_over(struct model_thread *thread)
{
	const struct model_thread *worker = thread->joined;

	for (unsigned i = 0; i < 2; i++) {
		unsigned line = watched_lines[i];

		thread->foreign[i] += worker->account.units[line] - thread->joined_mark.units[line];
		thread->foreign_weight[i] +=
			worker->account.weight[line] - thread->joined_mark.weight[line];
	}
	thread->weight += worker->weight - thread->joined_weight;
	thread->joined_weight = worker->weight;
	account_add_difference(&thread->account, &worker->account, &thread->joined_mark);
}

/* Brings a thread's account up to `now`; what its worker did is in it. */
static void settle(struct model *model, struct model_thread *thread, uint64_t now)
{
	if (!thread->joined) {
		charge_top(model, thread, now);
		return;
	}
	charge_top(model, thread->joined, now);
	take_over(thread);
	account_copy(&thread->joined_mark, &thread->joined->account);
	thread->last = now;
}

void process_settle(struct model *model, uint64_t now)
{
	if (!model->leader)
		return;
	settle(model, model->leader, now);
	account_add_difference(process_account(model), &model->leader->account,
			       &model->leader_mark);
	account_copy(&model->leader_mark, &model->leader->account);
	model->process_last = now;
}

static void change_leader(struct model *model, struct model_thread *thread, uint64_t now)
{
	process_settle(model, now);
	settle(model, thread, now);
	model->leader = thread;
	account_copy(&model->leader_mark, &thread->account);
}

void process_lead(struct model *model, struct model_thread *thread, bool launch, uint64_t now)
{
	if (thread->works_for)
		thread = thread->works_for;
	model->launches_lead |= launch;
	if (thread != model->leader && (launch || !model->launches_lead))
		change_leader(model, thread, now);
}

void process_leader_idle(struct model *model, uint64_t now)
{
	if (model->main && model->main->started && model->main != model->leader)
		change_leader(model, model->main, now);
}

/* What a worker idles in while nobody waits for it is "other"; while one does it is the hand-over. */
static void name_idle(struct model_thread *worker, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i <= worker->top; i++)
		if (worker->stack[i].slot == from)
			worker->stack[i].slot = to;
}

void process_join(struct model *model, struct model_thread *maker, struct model_thread *worker,
		  uint64_t now)
{
	const struct span *top = &maker->stack[maker->top];

	/* It waits where nothing happens but a section that no operator of its own is open in. */
	if (maker == worker || worker->works_for || top->kind != TRACE_SECTION || maker->works_for)
		return;
	if (maker->joined) {
		if (maker->joined->top)
			return;
		process_part(model, maker, now);
	} else {
		/* Getting there: the engine's dispatch. */
		thread_charge(model, maker, LINE_handover, now);
	}
	name_idle(worker, LINE_other, LINE_handover);
	maker->joined = worker;
	worker->works_for = maker;
	account_copy(&maker->joined_mark, &worker->account);
	maker->joined_weight = worker->weight;
}

void process_part(struct model *model, struct model_thread *thread, uint64_t now)
{
	settle(model, thread, now);
	name_idle(thread->joined, LINE_handover, LINE_other);
	thread->joined->works_for = NULL;
	thread->joined = NULL;
}

void process_program_ended(struct model *model, uint64_t began, uint64_t now)
{
	if (now - began <= model->program_length)
		return;
	process_settle(model, now);
	account_copy(&model->program, &model->process);
	account_copy(&model->program_imports, &model->imports);
	model->program_length = now - began;
	model->program_end = now;
}

void process_import(struct model *model, const struct model_thread *thread, uint64_t now)
{
	if (thread != model->main || !model->startup_ended)
		return;
	process_settle(model, now);
	model->importing = true;
}

void process_imported(struct model *model, const struct model_thread *thread, uint64_t began,
		      uint64_t now)
{
	if (thread != model->main || !model->startup_ended)
		return;
	model->import_units += now - (began > model->startup_end ? began : model->startup_end);
	process_settle(model, now);
	model->importing = false;
}

/* Recording was stopped, or the process killed, while its program ran. */
static bool program_runs(const struct model *model, const struct model_thread *main, uint64_t end)
{
	const struct span *base = &main->stack[main->top ? 1 : 0];

	if (!main->base && (!main->top || base->kind != TRACE_FRAME))
		return false;
	return end - (main->base ? main->first : base->enter) > model->program_length;
}

void process_finish(struct model *model, uint64_t end)
{
	if (model->main && program_runs(model, model->main, end))
		model->program_end = 0;
	for (uint32_t i = 0; i < model->definitions.thread_count; i++) {
		struct model_thread *thread = model->threads[i];

		/* What is still open goes on to the end; a thread with nothing open has ended. */
		if (!thread || !thread->top)
			continue;
		if (thread->joined)
			process_part(model, thread, end);
		else
			charge_top(model, thread, end);
	}
	process_settle(model, end);
}

struct ledger process_ledger_sum(struct model *model, const struct account *account,
				 const struct account *imports)
{
	const struct account none = { 0 };
	struct account all = { 0 };

	account_add_difference(&all, account, &none);
	account_add_difference(&all, imports, &none);
	struct ledger ledger = ledger_of(&all, &model->calls);
	account_free(&all);
	return ledger;
}

struct ledger process_ledger_of(struct model *model)
{
	return process_ledger_sum(model, &model->process, &model->imports);
}
