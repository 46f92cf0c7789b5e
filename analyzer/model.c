/* model.c: see model.h. */
#include "analyzer/model.h"

#include <stdlib.h>

#include "analyzer/read_ahead.h"
#include "analyzer/walk.h"

static void free_thread(struct model_thread *thread)
{
	if (!thread)
		return;
	for (uint32_t i = 0; i < thread->context_room; i++)
		free(thread->contexts[i].calls);
	free(thread->contexts);
	free(thread->stack);
	free(thread->ranges);
	free(thread->runs);
	for (uint32_t i = 0; i < thread->loop_mark_room; i++)
		account_free(&thread->loop_marks[i]);
	free(thread->loop_marks);
	account_free(&thread->account);
	account_free(&thread->joined_mark);
	autograd_free(&thread->autograd);
	free(thread);
}

void model_start(struct model *model, struct trace_reader *reader)
{
	const struct trace_header *header = trace_get_header(reader);

	model->unit_ns = trace_unit_ns(reader);
	model->main_tid = header->pid;
	model->open = header->open.units;
	definitions_load(&model->definitions, reader);
	weights_start(&model->weights, &model->definitions, model->unit_ns);
	call_tree_start(&model->tree);
	calls_start(&model->calls, &model->definitions, model->unit_ns);
	op_table_start(&model->op_table, &model->calls);
	memory_grow(model->threads, model->definitions.thread_count, model->thread_room);
	model->ranges = memory_zero(model->definitions.string_count, sizeof(*model->ranges));
	loops_start(model, reader);
	waits_start(model);
}

void model_finish(struct model *model, struct trace_reader *reader)
{
	const struct trace_header *header = trace_get_header(reader);

	/* The process's end may be much later than what was recorded, or can be read. */
	model->end = model->last_event > model->open ? model->last_event : model->open;
	if (header->stopped == TRACE_STOP_NONE && !trace_get_summary(reader)->truncated &&
	    header->ended != TRACE_END_NONE && header->end.units > model->end &&
	    model_time_is_sane(model, header->end.units))
		model->end = header->end.units;
	model->has_library = definitions_layer_state(&model->definitions, "cuda.libraries") ==
			     LAYER_ON;
	for (uint32_t i = 1; i < model->definitions.function_count; i++)
		model->has_library |= model->definitions.functions[i].category ==
				      TRACE_CATEGORY_LIBRARY;
	walk_finish(model);
	device_finish(model);
	weights_finish(&model->weights, &model->tree);
	calls_finish(&model->calls);
	op_table_finish(&model->op_table);
}

void model_load(struct model *model, struct trace_reader *reader)
{
	struct read_ahead ahead;
	struct trace_batch batch;

	model_start(model, reader);
	read_ahead_start(&ahead, reader);
	while (read_ahead_next(&ahead, &batch))
		walk_batch(model, reader, &batch);
	read_ahead_end(&ahead);
	model_finish(model, reader);
}

void model_free(struct model *model)
{
	for (uint32_t i = 0; i < model->definitions.thread_count; i++)
		free_thread(model->threads[i]);
	free(model->threads);
	free(model->ranges);
	account_free(&model->process);
	account_free(&model->leader_mark);
	account_free(&model->startup);
	account_free(&model->program);
	account_free(&model->imports);
	account_free(&model->program_imports);
	op_table_free(&model->op_table);
	loops_free(&model->loops);
	waits_free(&model->waits);
	findings_free(&model->findings);
	raises_free(&model->raises);
	device_free(&model->devices);
	calls_free(&model->calls);
	call_tree_free(&model->tree);
	definitions_free(&model->definitions);
	*model = (struct model){ 0 };
}
