/* definitions.c: see definitions.h. */
#include "analyzer/definitions.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/lines.h"
#include "analyzer/op_names.h"
#include "analyzer/origin.h"
#include "analyzer/symbols.h"
#include "traces/calibration_file.h"

/* No writer has so many, and all are looked through again and again. */
#define LAYERS_MAX 64u
#define INFOS_MAX  1024u

static void id_map_set(struct id_map *map, uint64_t id, uint32_t index)
{
	if (id >= ID_MAX)
		return;
	if (id >= map->room) {
		uint32_t room = map->room;

		map->indices =
			memory_grow_(map->indices, &room, (size_t)id + 1, sizeof(*map->indices));
		map->room = room;
	}
	map->indices[id] = index;
}

/*
 * The place for a new element; element 0 is made with the first. NULL: the id is defined already, or no writer
 * counts that far.
 */
#define add(definitions, what, id)                                                                 \
	({                                                                                         \
		bool new_ = (id) < ID_MAX && !id_map_get(&(definitions)->what##_ids, id);          \
                                                                                                   \
		if (new_) {                                                                        \
			memory_grow((definitions)->what##s, (definitions)->what##_count + 1,       \
				    (definitions)->what##_room);                                   \
			if (!(definitions)->what##_count)                                          \
				(definitions)->what##_count = 1;                                   \
			id_map_set(&(definitions)->what##_ids, id, (definitions)->what##_count);   \
		}                                                                                  \
		new_ ? &(definitions)->what##s[(definitions)->what##_count++] : NULL;              \
	})

static const char *text(struct definitions *definitions, struct trace_str str)
{
	return arena_text(&definitions->arena, str.data, str.length);
}

static const uint8_t *blob(struct definitions *definitions, struct trace_str str)
{
	void *bytes = arena_get(&definitions->arena, str.length);

	return str.length ? memcpy(bytes, str.data, str.length) : bytes;
}

static void load_code(struct definitions *definitions, const struct record_CODE *record)
{
	struct def_code *code = add(definitions, code, record->code);

	if (!code)
		return;
	code->file = text(definitions, record->file);
	code->name = text(definitions, record->name);
	code->flags = record->flags;
	code->first_line = record->first_line;
	code->user = origin_is_user(code->file, code->name);
	code->importing = origin_is_import(code->file);
	code->step = (uint8_t)origin_step(code->file, code->name);
}

static void load_lines(struct definitions *definitions, const struct record_LINES *record)
{
	uint32_t index = id_map_get(&definitions->code_ids, record->code);
	struct def_code *code = index ? &definitions->codes[index] : NULL;

	if (!code || code->python)
		return;
	code->python = record->python;
	code->lines = blob(definitions, record->lines);
	code->lines_bytes = record->lines.length;
	code->bytecode = blob(definitions, record->bytecode);
	code->bytecode_bytes = record->bytecode.length;
}

static void load_op(struct definitions *definitions, const struct record_OP *record)
{
	const char **op = add(definitions, op, record->op);
	char *name;

	if (!op)
		return;
	name = op_name_of_symbol(record->symbol.data, record->symbol.length);
	*op = arena_text(&definitions->arena, name, strlen(name));
	free(name);
}

static void load_node_type(struct definitions *definitions, const struct record_NODE_TYPE *record)
{
	const char **type = add(definitions, node_type, record->type);
	char *name;

	if (!type)
		return;
	name = node_name_of_type(record->name.data, record->name.length);
	*type = arena_text(&definitions->arena, name, strlen(name));
	free(name);
}

static void load_function(struct definitions *definitions, const struct record_FUNCTION *record)
{
	struct def_function *function = add(definitions, function, record->function);

	if (!function)
		return;
	function->name = text(definitions, record->name);
	function->library = text(definitions, record->library);
	function->category = record->category;
	function->is_graph = !strncmp(function->name, "cudaGraphLaunch", 15);
	function->is_host_function = !strncmp(function->name, "cudaLaunchHostFunc", 18);
	function->is_per_thread = strstr(function->name, "_ptsz");
}

static void load_thread(struct definitions *definitions, const struct record_THREAD *record)
{
	struct def_thread *thread = add(definitions, thread, record->thread);

	if (!thread)
		return;
	thread->number = record->thread;
	thread->tid = record->tid;
	thread->depth = record->depth;
	thread->start = record->start;
	thread->name = text(definitions, record->name);
}

uint32_t definitions_thread(struct definitions *definitions, uint32_t number)
{
	const struct record_THREAD unknown = { .thread = number, .name = { "?", 1 } };

	if (number < ID_MAX && !id_map_get(&definitions->thread_ids, number))
		load_thread(definitions, &unknown);
	return id_map_get(&definitions->thread_ids, number);
}

static void load_layer(struct definitions *definitions, const struct record_LAYER *record)
{
	const char *name = text(definitions, record->layer);
	struct def_layer *layer = NULL;

	for (uint32_t i = 0; i < definitions->layer_count; i++)
		if (!strcmp(definitions->layers[i].name, name))
			layer = &definitions->layers[i];
	if (!layer && definitions->layer_count >= LAYERS_MAX)
		return;
	if (!layer) {
		memory_grow(definitions->layers, definitions->layer_count, definitions->layer_room);
		layer = &definitions->layers[definitions->layer_count++];
	}
	*layer = (struct def_layer){ name, text(definitions, record->detail), record->state };
}

static void load_info(struct definitions *definitions, const struct record_INFO *record)
{
	if (definitions->info_count >= INFOS_MAX)
		return;
	memory_grow(definitions->infos, definitions->info_count, definitions->info_room);
	definitions->infos[definitions->info_count++] =
		(struct def_info){ text(definitions, record->key),
				   text(definitions, record->value) };
}

static void load_module(struct definitions *definitions, const struct record_MODULE *record)
{
	struct def_module *module = add(definitions, module, record->module);

	if (!module)
		return;
	module->path = text(definitions, record->path);
	module->build_id = blob(definitions, record->build_id);
	module->build_id_bytes = record->build_id.length;
}

static void load_stack(struct definitions *definitions, const struct record_STACK *record)
{
	struct def_stack *stack = add(definitions, stack, record->stack);

	if (!stack)
		return;
	stack->frames = blob(definitions, record->frames);
	stack->bytes = record->frames.length;
}

static void load_string(struct definitions *definitions, const struct record_STRING *record)
{
	const char **string = add(definitions, string, record->string);

	if (string)
		*string = text(definitions, record->text);
}

static void load_queue(struct definitions *definitions, const struct record_GPU_QUEUE *record)
{
	struct def_queue *queue = add(definitions, queue, record->queue);

	if (queue)
		*queue = (struct def_queue){ record->device, record->context, record->stream };
}

static void load_calibration(struct definitions *definitions,
			     const struct record_CALIBRATION *record)
{
	const char *kind = text(definitions, record->kind);
	const char *source = text(definitions, record->source);
	struct record_CALIBRATION *calibration;

	if (definitions->calibration_count >= CALIBRATION_WEIGHTS_MAX)
		return;
	memory_grow(definitions->calibrations, definitions->calibration_count,
		    definitions->calibration_room);
	calibration = &definitions->calibrations[definitions->calibration_count++];
	*calibration = *record;
	calibration->kind = (struct trace_str){ kind, (uint32_t)strlen(kind) };
	calibration->source = (struct trace_str){ source, (uint32_t)strlen(source) };
}

static int load(void *context, unsigned type, const union trace_record *record,
		const uint8_t *bytes, size_t length)
{
	struct definitions *definitions = context;

	(void)bytes;
	(void)length;
	if (!record)
		return 0;
	switch (type) {
	case TRACE_RECORD_INFO: load_info(definitions, &record->INFO); break;
	case TRACE_RECORD_LAYER: load_layer(definitions, &record->LAYER); break;
	case TRACE_RECORD_THREAD: load_thread(definitions, &record->THREAD); break;
	case TRACE_RECORD_TORCH_THREAD:
		id_map_set(&definitions->torch_threads, record->TORCH_THREAD.torch_thread,
			   id_map_get(&definitions->thread_ids, record->TORCH_THREAD.thread));
		break;
	case TRACE_RECORD_CODE: load_code(definitions, &record->CODE); break;
	case TRACE_RECORD_LINES: load_lines(definitions, &record->LINES); break;
	case TRACE_RECORD_OP: load_op(definitions, &record->OP); break;
	case TRACE_RECORD_NODE_TYPE: load_node_type(definitions, &record->NODE_TYPE); break;
	case TRACE_RECORD_STRING: load_string(definitions, &record->STRING); break;
	case TRACE_RECORD_FUNCTION: load_function(definitions, &record->FUNCTION); break;
	case TRACE_RECORD_MODULE: load_module(definitions, &record->MODULE); break;
	case TRACE_RECORD_STACK: load_stack(definitions, &record->STACK); break;
	case TRACE_RECORD_CALIBRATION: load_calibration(definitions, &record->CALIBRATION); break;
	case TRACE_RECORD_GPU_QUEUE: load_queue(definitions, &record->GPU_QUEUE); break;
	case TRACE_RECORD_LOST: definitions->lost_events += record->LOST.events; break;
	}
	return 0;
}

/* Element 0 is there even where nothing was defined. */
#define make_first(definitions, what, ...)                                                         \
	do {                                                                                       \
		memory_grow((definitions)->what##s, (definitions)->what##_count,                   \
			    (definitions)->what##_room);                                           \
		if (!(definitions)->what##_count)                                                  \
			(definitions)->what##_count = 1;                                           \
		(definitions)->what##s[0] = __VA_ARGS__;                                           \
	} while (0)

void definitions_load(struct definitions *definitions, struct trace_reader *reader)
{
	trace_each_record(reader, load, definitions);
	make_first(definitions, code, (struct def_code){ .file = "?", .name = "?" });
	make_first(definitions, function, (struct def_function){ .name = "?", .library = "?" });
	make_first(definitions, thread, (struct def_thread){ .name = "?" });
	make_first(definitions, op, "?");
	make_first(definitions, node_type, "?");
	make_first(definitions, string, "?");
}

void definitions_free(struct definitions *definitions)
{
	for (uint32_t i = 0; i < definitions->code_count; i++)
		if (definitions->codes[i].loops) {
			bytecode_loops_free(definitions->codes[i].loops);
			free(definitions->codes[i].loops);
		}
	for (uint32_t i = 0; i < definitions->module_count; i++)
		symbols_free(definitions->modules[i].symbols);
	free(definitions->modules);
	free(definitions->stacks);
	free(definitions->module_ids.indices);
	free(definitions->stack_ids.indices);
	free(definitions->queues);
	free(definitions->queue_ids.indices);
	free(definitions->codes);
	free(definitions->ops);
	free(definitions->node_types);
	free(definitions->strings);
	free(definitions->functions);
	free(definitions->threads);
	free(definitions->layers);
	free(definitions->infos);
	free(definitions->calibrations);
	free(definitions->code_ids.indices);
	free(definitions->op_ids.indices);
	free(definitions->node_type_ids.indices);
	free(definitions->string_ids.indices);
	free(definitions->function_ids.indices);
	free(definitions->thread_ids.indices);
	free(definitions->torch_threads.indices);
	arena_free(&definitions->arena);
	*definitions = (struct definitions){ 0 };
}

const char *definitions_info(const struct definitions *definitions, const char *key)
{
	for (uint32_t i = definitions->info_count; i > 0; i--)
		if (!strcmp(definitions->infos[i - 1].key, key))
			return definitions->infos[i - 1].value;
	return NULL;
}

enum layer_state definitions_layer_state(const struct definitions *definitions, const char *name)
{
	for (uint32_t i = 0; i < definitions->layer_count; i++)
		if (!strcmp(definitions->layers[i].name, name))
			return definitions->layers[i].state < LAYER_UNKNOWN ?
				       (enum layer_state)definitions->layers[i].state :
				       LAYER_UNKNOWN;
	return LAYER_UNKNOWN;
}

bool definitions_layer_off(const struct definitions *definitions, const char *name)
{
	enum layer_state state = definitions_layer_state(definitions, name);

	return state == LAYER_OFF || state == LAYER_FAILED;
}

struct code_loops *code_find_loops(struct def_code *code)
{
	struct code_loops loops;

	if (code->loops_known)
		return code->loops;
	code->loops_known = true;
	if (bytecode_loops(&loops, code->python, code->first_line,
			   (struct trace_str){ (const char *)code->lines, code->lines_bytes },
			   (struct trace_str){ (const char *)code->bytecode,
					       code->bytecode_bytes })) {
		code->loops = memory_zero(1, sizeof(loops));
		*code->loops = loops;
	}
	return code->loops;
}

uint32_t code_line(const struct def_code *code, uint32_t site)
{
	struct trace_str lines = { (const char *)code->lines, code->lines_bytes };
	int32_t line;

	if (!code->python || !site || site > code->bytecode_bytes)
		return 0;
	line = lines_lookup(code->python, code->first_line, lines, site - 1);
	return line > 0 ? (uint32_t)line : 0;
}

uint32_t definitions_index(const struct definitions *definitions, unsigned kind, uint32_t id)
{
	switch (kind) {
	case TRACE_FRAME: return id_map_get(&definitions->code_ids, id);
	case TRACE_OP:
	case TRACE_OP_SPAN: return id_map_get(&definitions->op_ids, id);
	case TRACE_NODE: return id_map_get(&definitions->node_type_ids, id);
	case TRACE_CALL:
	case TRACE_LAUNCH:
	case TRACE_COPY:
	case TRACE_SET:
	case TRACE_MEMORY:
	case TRACE_SYNC: return id_map_get(&definitions->function_ids, id);
	default: return 0;
	}
}
