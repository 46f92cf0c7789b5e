/*
 * definitions.h: what the ids in a trace stand for: code objects, operators, functions, threads.
 *
 * For analyzer/'s model. Arrays begin with an element 0 that stands for what is not known. All text is
 * valid UTF-8 and lives as long as the definitions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/bytecode.h"
#include "analyzer/memory.h"
#include "traces/reader.h"

/* Ids are counted from 1 by the writer; larger ones are damage. */
#define ID_MAX (4u << 20)

/* From an id to an index; 0: not defined. */
struct id_map {
	uint32_t *indices;
	uint32_t room;
};

static inline uint32_t id_map_get(const struct id_map *map, uint64_t id)
{
	return id < map->room ? map->indices[id] : 0;
}

/* co_flags of generators, coroutines, and both. */
#define CODE_GENERATOR_FLAGS (0x20u | 0x80u | 0x200u)

struct def_code {
	const char *file, *name;
	uint32_t flags, first_line;
	bool user;       /* the user's own: outside site-packages, the standard library, ... */
	bool importing;  /* of the interpreter's import machinery */
	uint8_t step;    /* enum origin_step */
	uint16_t python; /* of the LINES record; 0: there is none */
	const uint8_t *lines, *bytecode;
	uint32_t lines_bytes, bytecode_bytes;
	bool loops_known;
	struct code_loops *loops; /* see code_find_loops; NULL: none */
};

struct def_function {
	const char *name, *library;
	uint8_t category;                /* enum trace_category */
	bool is_graph, is_host_function; /* it launches one */
	bool is_per_thread;              /* stream 0 is the thread's own */
	uint32_t first_class;            /* calls.c */
};

struct def_thread {
	uint32_t number, tid, depth;
	uint64_t start;
	const char *name;
};

struct def_layer {
	const char *name, *detail;
	uint8_t state;
};

/* A loaded file. */
struct def_module {
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_bytes;
	struct symbols *symbols; /* native_stacks.c; NULL: not looked at yet */
};

/* As in STACK records. */
struct def_stack {
	const uint8_t *frames;
	uint32_t bytes;
};

/* A stream of a device. */
struct def_queue {
	uint32_t device, context, stream;
};

struct def_info {
	const char *key, *value;
};

struct definitions {
	struct arena arena;
	struct def_code *codes;
	const char **ops, **node_types, **strings; /* names */
	struct def_function *functions;
	struct def_thread *threads;
	struct def_layer *layers;
	struct def_info *infos;
	struct def_module *modules;
	struct def_stack *stacks;
	uint32_t code_count, op_count, node_type_count, string_count, function_count, thread_count,
		layer_count, info_count, module_count, stack_count;
	uint32_t code_room, op_room, node_type_room, string_room, function_room, thread_room,
		layer_room, info_room, module_room, stack_room;
	struct id_map code_ids, op_ids, node_type_ids, string_ids, function_ids, thread_ids;
	struct def_queue *queues;
	uint32_t queue_count, queue_room;
	struct id_map queue_ids;
	struct id_map module_ids, stack_ids;
	struct id_map torch_threads; /* torch's number of a thread: index into threads */
	uint64_t lost_events;        /* of LOST records */
	struct record_CALIBRATION *calibrations; /* texts live as long as the rest */
	uint32_t calibration_count, calibration_room;
};

void definitions_load(struct definitions *definitions, struct trace_reader *reader);
void definitions_free(struct definitions *definitions);

/* The index of what an event of that kind (enum trace_event_code) names by its id; 0: not defined. */
uint32_t definitions_index(const struct definitions *definitions, unsigned kind, uint32_t id);

/* The index of a thread by its number, added where no record told of it. */
uint32_t definitions_thread(struct definitions *definitions, uint32_t number);

/* Whether what a "thread" holds is no thread's: it has a record, without the kernel's id. */
static inline bool definitions_are_others(const struct definitions *definitions, uint32_t index)
{
	return !definitions->threads[index].tid && definitions->threads[index].start;
}

/* The newest value of an INFO record; NULL where there is none. */
const char *definitions_info(const struct definitions *definitions, const char *key);

/* As in LAYER records, of a layer or a part of one ("ops.tap"). */
enum layer_state { LAYER_OFF, LAYER_ON, LAYER_FAILED, LAYER_UNKNOWN };
enum layer_state definitions_layer_state(const struct definitions *definitions, const char *name);

/* Whether it is known not to have been on. */
bool definitions_layer_off(const struct definitions *definitions, const char *name);

/*
 * The site of a call as others of the same instruction have it. CPython 3.11 makes a call in two
 * instructions, of which a specialised first one does the work of both.
 */
static inline uint32_t code_call_site(const struct def_code *code, uint32_t site)
{
	enum { PRECALL = 166, CALL = 171, PRECALL_UNITS = 2 };
	uint64_t at = 2 * ((uint64_t)site - 1);

	return site > PRECALL_UNITS && at + 1 < code->bytecode_bytes &&
			       code->bytecode[at] == CALL &&
			       code->bytecode[at - 2 * PRECALL_UNITS] == PRECALL ?
		       site - PRECALL_UNITS :
		       site;
}

/* The loops in its bytecode, found at the first call; NULL: none, or not known. */
struct code_loops *code_find_loops(struct def_code *code);

/* The line of an instruction (offset + 1, as sites in the trace); 0: not known. */
uint32_t code_line(const struct def_code *code, uint32_t site);
