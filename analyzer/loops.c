/* loops.c: see loops.h. */
#include "analyzer/loops.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"
#include "analyzer/origin.h"
#include "analyzer/process_ledger.h"

#define PEEK_FRAMES (1u << 17) /* events looked at for the direct distance */
#define PEEK_SHARE  20         /* a distance that fewer of them have is not that of plain calls */

/* A loop inside another is not watched any longer as a main loop if after that many passes... */
#define WATCH_PASSES 8
/* ...it has less than that share of it. */
#define WATCH_PERCENT 40

/* Bytecode that is followed at the end: far more than programs' loops take. */
#define LOOK_BYTES_MAX (1u << 30)

/* ---------------------------------------------------------------- start */

static bool is_generator(const struct model *model, uint32_t code)
{
	return model->definitions.codes[code].flags & CODE_GENERATOR_FLAGS;
}

/* Generators that go on are entered at another distance: they do not count. */
static uint32_t direct_distance(const struct model *model, struct trace_reader *reader)
{
	uint32_t *counts = memory_zero(1024, sizeof(*counts)), frames = 0, events = 0, found = 0;
	struct trace_batch batch;

	while (events < PEEK_FRAMES && trace_next_batch(reader, &batch)) {
		for (uint32_t i = 0; i < batch.count; i++)
			if (batch.events[i].code == TRACE_FRAME &&
			    !is_generator(model, id_map_get(&model->definitions.code_ids,
							    batch.events[i].fields[0]))) {
				counts[batch.events[i].fields[2] >> 1 & 1023]++;
				frames++;
			}
		events += batch.count;
	}
	trace_rewind(reader);
	while (found < 1023 && counts[found] <= frames / PEEK_SHARE)
		found++;
	free(counts);
	return found;
}

void loops_start(struct model *model, struct trace_reader *reader)
{
	struct loops *loops = &model->loops;

	loops->direct = direct_distance(model, reader);
	loops->carries = memory_zero(model->definitions.code_count, sizeof(*loops->carries));
	memory_grow(loops->nodes, LOOP_FIRST, loops->room);
	loops->count = LOOP_FIRST;
}

void loops_free(struct loops *loops)
{
	for (uint32_t i = 0; i < loops->count; i++) {
		histogram_free(&loops->nodes[i].pass_times);
		account_free(&loops->nodes[i].account);
	}
	free(loops->nodes);
	free(loops->carries);
	free(loops->row_cells);
	free(loops->cells);
	hash_free(&loops->index);
	*loops = (struct loops){ 0 };
}

/* ---------------------------------------------------------------- nodes */

static uint32_t find_node(struct loops *loops, uint32_t parent, uint32_t code, uint32_t loop)
{
	uint64_t mixed = hash_mix((uint64_t)parent << 32 | code, loop);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), probe = hash, found;

	/* Recursion is the same loop. */
	for (found = parent; found >= LOOP_FIRST; found = loops->nodes[found].parent)
		if (loops->nodes[found].code == code && loops->nodes[found].loop == loop)
			return found;
	while ((found = hash_next(&loops->index, hash, &probe)))
		if (loops->nodes[found].parent == parent && loops->nodes[found].code == code &&
		    loops->nodes[found].loop == loop)
			return found;
	if (loops->count >= LOOP_NODES_MAX)
		return LOOP_NONE;
	memory_grow(loops->nodes, loops->count, loops->room);
	loops->nodes[loops->count] = (struct loop_node){
		.parent = parent,
		.code = code,
		.loop = loop,
		.depth = parent >= LOOP_FIRST ? loops->nodes[parent].depth + 1 : 0,
	};
	hash_add(&loops->index, hash, loops->count);
	return loops->count++;
}

/* Where it may come to be the main loop, what the process does in it is summed up. */
static bool is_watched(const struct model *model, const struct model_thread *thread,
		       struct loop_node *node, uint64_t now)
{
	const struct loop_run *around = thread->run_count ? &thread->runs[thread->run_count - 1] :
							    NULL;
	const struct loop_node *outer = around ? &model->loops.nodes[around->node] : NULL;

	if (thread != model->main || !model->startup_ended)
		return false;
	/* What is missed of a run around is missed of those in it. */
	if ((around && !around->accounted) ||
	    (outer && outer->passes > WATCH_PASSES &&
	     node->time * 100 < WATCH_PERCENT * (outer->time + (now - around->entered)))) {
		node->account_missed = true;
		return false;
	}
	return true;
}

static void mark(struct model *model, struct model_thread *thread, uint32_t run)
{
	memory_grow(thread->loop_marks, run, thread->loop_mark_room);
	account_copy(&thread->loop_marks[run], &model->process);
	graph_run_begins(&model->graph, &thread->runs[run].graph);
	thread->runs[run].accounted = true;
}

/* ---------------------------------------------------------------- runs and passes */

/* Whether one of PyTorch's steps is open between the loop around and that frame, its own included. */
static bool is_in_step(const struct model_thread *thread, const struct span *frame)
{
	uint32_t outer = thread->run_count ? thread->runs[thread->run_count - 1].frame : 0;
	uint32_t at = (uint32_t)(frame - thread->stack);

	while (at > outer && !thread->stack[at].step)
		at = thread->stack[at - 1].frame;
	return at > outer;
}

static void open_run(struct model *model, struct model_thread *thread, struct span *frame,
		     uint32_t loop, bool pass, uint64_t now)
{
	struct loops *loops = &model->loops;
	uint32_t root = thread == model->main ? LOOP_MAIN_THREAD : LOOP_OTHER_THREADS;
	uint32_t around = thread->run_count ? thread->runs[thread->run_count - 1].node : root;
	uint32_t number = find_node(loops, around, frame->code, loop);
	struct loop_node *node = &loops->nodes[number];
	bool recursive = node->open++, watched;

	if (thread->run_count > frame->run_first) {
		loops->nodes[around].has_inner = true;
		thread->runs[thread->run_count - 1].asked = false;
	}
	if (!node->runs++) {
		node->first = now;
		node->in_step = is_in_step(thread, frame);
	}
	node->passes += pass;
	watched = !recursive && is_watched(model, thread, node, now);
	memory_grow(thread->runs, thread->run_count, thread->run_room);
	thread->runs[thread->run_count++] = (struct loop_run){
		.node = number,
		.loop = loop,
		.frame = (uint32_t)(frame - thread->stack),
		.entered = now,
		.pass_start = now,
		.entered_weight = thread->weight,
		.pass_weight = thread->weight,
		.pass = node->passes,
		.imports = model->import_units,
		.recursive = recursive,
		.fresh = true,
	};
	if (watched) {
		process_settle(model, now);
		mark(model, thread, thread->run_count - 1);
	}
	frame->flags |= SPAN_LOOPS;
}

/* A pass ends, whose time counts: without what tare itself took of it. */
static void add_pass(struct loop_node *node, const struct loop_run *run,
		     const struct model_thread *thread, uint64_t end)
{
	uint64_t time = end - run->pass_start;
	uint64_t weight = (thread->weight - run->pass_weight) >> WEIGHT_BITS;

	time -= weight < time ? weight : time;
	if (!node->pass_times.count)
		node->first_pass = time;
	histogram_add(&node->pass_times, time);
}

/*
 * What the frame did since its last child is not the loop's. A last turn that finds the iterator empty is
 * no pass.
 */
static void close_run(struct model *model, struct model_thread *thread, uint64_t now)
{
	struct loop_run *run = &thread->runs[--thread->run_count];
	struct loop_node *node = &model->loops.nodes[run->node];
	const struct span *frame = &thread->stack[run->frame];
	uint64_t end = frame->child_end > run->pass_start ? frame->child_end : run->pass_start;
	bool generator = is_generator(model, node->code);

	node->open--;
	if (run->asked && generator)
		node->doubtful_end = true;
	else if (run->asked)
		node->passes--;
	if (run->recursive)
		return;
	end = end < now ? end : now;
	uint64_t imports = thread == model->main ? model->import_units - run->imports : 0;
	uint64_t time = end > run->entered ? end - run->entered : 0;

	node->time += time > imports ? time - imports : 0;
	node->weight += thread->weight - run->entered_weight;
	if (!generator && !run->asked)
		add_pass(node, run, thread, end);
	if (run->accounted) {
		device_window(model, run->node, run->entered, end);
		process_settle(model, now);
		account_add_difference(&node->account, &model->process,
				       &thread->loop_marks[thread->run_count]);
		node->account_known = true;
		if (!run->asked)
			graph_pass_ends(&model->graph, &run->graph, node);
		graph_run_ends(&model->graph, &run->graph, node);
		if (thread == model->leader)
			node->account.units[frame->slot] -= now - end;
	}
}

static void new_pass(struct model *model, const struct model_thread *thread, struct loop_run *run,
		     uint64_t now)
{
	struct loop_node *node = &model->loops.nodes[run->node];

	run->pass = ++node->passes;
	if (!run->recursive && !is_generator(model, node->code))
		add_pass(node, run, thread, now);
	run->pass_start = now;
	run->pass_weight = thread->weight;
	if (run->accounted)
		graph_pass_ends(&model->graph, &run->graph, node);
}

static void note_unsure(struct loop_node *node, uint32_t site)
{
	for (uint32_t i = 0; i < node->unsure_count && i < LOOP_UNSURE_MAX; i++)
		if (node->unsure[i] == site)
			return;
	if (node->unsure_count < LOOP_UNSURE_MAX)
		node->unsure[node->unsure_count] = site;
	node->unsure_count++;
}

static inline void note_own(struct loop_node *node, uint32_t site)
{
	uint64_t bit = (uint64_t)1 << (site & 63);

	if (node->own_seen & bit)
		return;
	node->own_seen |= bit;
	if (node->own_count < LOOP_OWN_MAX)
		node->own[node->own_count++] = site;
}

static bool is_around(const struct code_loops *loops, uint32_t outer, uint32_t loop)
{
	while (loop && loop != outer)
		loop = loops->loops[loop].outer;
	return loop;
}

/* Enters `loop` and those around that are not open. `again`: of them and further out no pass begins. */
static void open_runs(struct model *model, struct model_thread *thread, struct span *frame,
		      uint32_t loop, uint32_t again, uint64_t now)
{
	uint32_t innermost =
		thread->run_count > frame->run_first ? thread->runs[thread->run_count - 1].loop : 0;

	if (loop == innermost)
		return;
	open_runs(model, thread, frame, frame->loops->loops[loop].outer, again, now);
	open_run(model, thread, frame, loop, !again || !is_around(frame->loops, loop, again), now);
}

/* Not where it goes on with the generator that it waited for. */
static bool comes_again(const struct model *model, uint32_t code, uint32_t site, uint32_t last)
{
	const struct def_code *definition = &model->definitions.codes[code];
	const struct trace_str bytecode = { (const char *)definition->bytecode,
					    definition->bytecode_bytes };

	return site < last ||
	       (site == last && !bytecode_delegates(definition->python, bytecode, site - 1));
}

/* A generator that goes on is in the loops it was in; the pass is new where it comes by the same place. */
static void resume(struct model *model, struct model_thread *thread, struct span *frame,
		   uint32_t loop, uint32_t site, uint64_t now)
{
	struct loop_carry *carry = &model->loops.carries[frame->code];
	uint32_t common = 0;

	if (carry->thread == thread->number) {
		common = carry->loop;
		while (common && !is_around(frame->loops, common, loop))
			common = frame->loops->loops[common].outer;
		if (common && comes_again(model, frame->code, site, carry->last))
			common = frame->loops->loops[common].outer;
		carry->thread = 0;
	}
	open_runs(model, thread, frame, loop, common, now);
}

void loops_event(struct model *model, struct model_thread *thread, struct span *frame,
		 uint32_t site, enum loop_event what, uint64_t now)
{
	const struct code_loops *loops = frame->loops;
	uint32_t at = site <= loops->units ? loops->at[site - 1] : 0, last = frame->loop_last;
	bool open = thread->run_count > frame->run_first, pass = false;

	if (at & BYTECODE_ASIDE) {
		if (open)
			thread->runs[thread->run_count - 1].aside = true;
		return;
	}
	while (thread->run_count > frame->run_first &&
	       !is_around(loops, thread->runs[thread->run_count - 1].loop, at))
		close_run(model, thread, now);
	if (!at) {
		frame->loop_last = 0;
		model->loops.carries[frame->code].thread = 0;
		return;
	}
	frame->loop_last = site;
	if (thread->run_count > frame->run_first) {
		struct loop_run *run = &thread->runs[thread->run_count - 1];

		pass = site < last || (site == last && (run->aside || what == LOOP_EVENT_DIRECT));
		if (pass)
			new_pass(model, thread, run, now);
		else if (site == last && !run->direct)
			note_unsure(&model->loops.nodes[run->node], site);
		open_runs(model, thread, frame, at, 0, now);
	} else {
		resume(model, thread, frame, at, site, now);
	}
	struct loop_run *run = &thread->runs[thread->run_count - 1];
	const struct code_loop *loop = &loops->loops[at];
	bool asks = site > loop->first && site <= loop->asks_until;

	if (site != last || pass || !open)
		run->direct = what == LOOP_EVENT_DIRECT;
	run->asked = asks && (run->asked || pass || run->fresh);
	run->fresh = false;
	run->aside = false;
	note_own(&model->loops.nodes[run->node], site);
}

void loops_left(struct model *model, struct model_thread *thread, uint64_t now)
{
	const struct span *frame = &thread->stack[thread->top];

	if (thread->run_count > frame->run_first && is_generator(model, frame->code))
		model->loops.carries[frame->code] = (struct loop_carry){
			.thread = thread->number,
			.last = frame->loop_last,
			.loop = thread->runs[thread->run_count - 1].loop,
		};
	while (thread->run_count > frame->run_first)
		close_run(model, thread, now);
}

/* ---------------------------------------------------------------- what is in them */

void loops_operator(struct model *model, struct model_thread *thread, uint32_t row,
		    const struct op_sample *sample)
{
	struct loops *loops = &model->loops;
	const struct model_thread *looping =
		thread->run_count || !thread->works_for ? thread : thread->works_for;
	uint32_t node, at, before = 0;

	if (!looping->run_count)
		return;
	node = looping->runs[looping->run_count - 1].node;
	memory_grow(loops->row_cells, row, loops->row_room);
	for (at = loops->row_cells[row]; at && loops->cells[at].node != node;
	     at = loops->cells[at].next)
		before = at;
	if (!at) {
		loops->cell_count += !loops->cell_count;
		at = loops->cell_count++;
		memory_grow(loops->cells, at, loops->cell_room);
		loops->cells[at] =
			(struct loop_cell){ .node = node, .next = loops->row_cells[row] };
		loops->row_cells[row] = at;
	} else if (before) {
		/* To the front: calls repeat. */
		loops->cells[before].next = loops->cells[at].next;
		loops->cells[at].next = loops->row_cells[row];
		loops->row_cells[row] = at;
	}
	loops->cells[at].calls++;
	if (sample)
		op_sum_add(&model->op_table, &loops->cells[at].sum, sample);
}

void loops_step(struct model *model, const struct model_thread *thread, const struct span *caller,
		uint32_t code)
{
	const struct def_code *definition = &model->definitions.codes[code];
	struct loop_node *node;

	if (!thread->run_count)
		return;
	node = &model->loops.nodes[thread->runs[thread->run_count - 1].node];
	node->optimizes |= definition->step == STEP_OPTIMIZER;
	if (caller->step != STEP_MODULE || definition->step)
		return;
	for (uint32_t i = 0; i < node->module_count; i++)
		if (node->modules[i] == code)
			return;
	if (node->module_count < LOOP_MODULES_MAX)
		node->modules[node->module_count++] = code;
}

bool loops_is_in(const struct loops *loops, uint32_t node, uint32_t outer)
{
	while (node >= LOOP_FIRST && node != outer)
		node = loops->nodes[node].parent;
	return node == outer;
}

uint64_t loops_calls(const struct loops *loops, uint32_t row, uint32_t node)
{
	uint64_t calls = 0;

	for (uint32_t at = row < loops->row_room ? loops->row_cells[row] : 0; at;
	     at = loops->cells[at].next)
		if (loops_is_in(loops, loops->cells[at].node, node))
			calls += loops->cells[at].calls;
	return calls;
}

uint64_t loops_parts(const struct loops *loops, const struct op_table *table, uint32_t row,
		     uint32_t node, double parts[OP_PART_COUNT])
{
	uint64_t timed = 0;

	for (uint32_t at = row < loops->row_room ? loops->row_cells[row] : 0; at;
	     at = loops->cells[at].next) {
		const struct op_sum *sum = &loops->cells[at].sum;

		if (!sum->timed || !loops_is_in(loops, loops->cells[at].node, node))
			continue;
		op_sum_parts(table, &table->rows[row], sum, parts);
		timed += sum->timed;
	}
	return timed;
}

static void note_launches(struct loops *loops, uint32_t row)
{
	for (uint32_t at = loops->row_cells[row]; at; at = loops->cells[at].next)
		for (uint32_t i = loops->cells[at].node;
		     i >= LOOP_FIRST && !loops->nodes[i].launches; i = loops->nodes[i].parent)
			loops->nodes[i].launches = true;
}

/* Distinct operators of each loop. */
static void count_rows(struct model *model)
{
	struct loops *loops = &model->loops;

	for (uint32_t row = 1; row < loops->row_room && row < model->op_table.count; row++) {
		if (model->op_table.rows[row].launches)
			note_launches(loops, row);
		if (model->op_table.rows[row].key.kind != OP_KIND_OPERATOR)
			continue;
		for (uint32_t at = loops->row_cells[row]; at; at = loops->cells[at].next)
			for (uint32_t i = loops->cells[at].node;
			     i >= LOOP_FIRST && loops->nodes[i].row_last != row;
			     i = loops->nodes[i].parent) {
				loops->nodes[i].row_last = row;
				loops->nodes[i].row_count++;
			}
	}
}

void loops_startup(struct model *model, uint64_t now)
{
	struct model_thread *thread = model->main;

	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++)
		model->loops.nodes[i].time = model->loops.nodes[i].weight = 0;
	for (uint32_t i = 0; thread && i < thread->run_count; i++) {
		thread->runs[i].entered = thread->runs[i].pass_start = now;
		thread->runs[i].entered_weight = thread->weight;
		thread->runs[i].pass_weight = thread->weight;
		thread->runs[i].imports = model->import_units;
		if (!thread->runs[i].recursive)
			mark(model, thread, i);
	}
}

/* ---------------------------------------------------------------- the end */

/* Whether there is time to follow the code once more: that takes as long as it is long. */
static bool look_at(const struct def_code *code, uint64_t *work)
{
	*work += code->bytecode_bytes;
	return *work <= LOOK_BYTES_MAX;
}

/*
 * Passes are known where none was in doubt, or where between any two of an event in doubt another
 * instruction with events of its own must run: that tells them apart. Around inner loops only an
 * instruction that every pass runs does.
 */
static bool passes_known(const struct model *model, const struct loop_node *node, uint64_t *work)
{
	const struct def_code *code = &model->definitions.codes[node->code];
	const struct trace_str bytecode = { (const char *)code->bytecode, code->bytecode_bytes };
	bool known = !node->doubtful_end && node->unsure_count <= LOOP_UNSURE_MAX;

	for (uint32_t i = 0; known && i < node->unsure_count; i++) {
		known = false;
		for (uint32_t other = 0; !known && other < node->own_count && look_at(code, work);
		     other++)
			known = bytecode_between(code->loops, node->loop, code->python, bytecode,
						 node->unsure[i] - 1, node->own[other] - 1);
	}
	if (!known || !node->has_inner)
		return known;
	for (uint32_t i = 0; i < node->own_count && look_at(code, work); i++)
		if (bytecode_always(code->loops, node->loop, code->python, bytecode,
				    node->own[i] - 1))
			return true;
	return false;
}

void loops_finish(struct model *model, uint64_t end)
{
	uint64_t work = 0;

	for (uint32_t i = 0; i < model->definitions.thread_count; i++)
		while (model->threads[i] && model->threads[i]->run_count)
			close_run(model, model->threads[i], end);
	count_rows(model);
	for (uint32_t i = LOOP_FIRST; i < model->loops.count; i++)
		model->loops.nodes[i].passes_known =
			passes_known(model, &model->loops.nodes[i], &work);
}
