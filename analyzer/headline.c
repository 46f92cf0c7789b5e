/* headline.c: see headline.h. */
#include "analyzer/headline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/memory.h"
#include "analyzer/table.h"

/* "libcudart.so.13" of "libcudart.so.13 /where/it/is, ...": the runtimes alone. Free it; NULL: none. */
static char *cuda_runtimes(const struct model *model)
{
	const char *info = definitions_info(&model->definitions, "cuda");
	char *out = info ? memory_zero(strlen(info) + 1, 1) : NULL;
	size_t length = 0;

	while (info && *info) {
		size_t name = strcspn(info, " ,");

		if (length)
			length += (size_t)sprintf(out + length, ", ");
		memcpy(out + length, info, name);
		length += name;
		info += strcspn(info, ",");
		info += strspn(info, ", ");
	}
	return out;
}

static const char *const layer_states[] = { "off", "on", "failed", "unknown" };

static const char *end_name(const struct trace_header *header)
{
	return header->ended == TRACE_END_EXIT ? "exit" :
	       header->ended == TRACE_END_EXEC ? "exec" :
						 NULL;
}

static json_t *text_json(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *layers_json(const struct model *model)
{
	json_t *layers = json_array();

	for (uint32_t i = 0; i < model->definitions.layer_count; i++) {
		const struct def_layer *layer = &model->definitions.layers[i];
		json_t *json = json_object();

		json_object_set_new(json, "layer", text_json(layer->name));
		json_object_set_new(json, "state",
				    text_json(layer_states[layer->state < 3 ? layer->state : 3]));
		json_object_set_new(json, "detail", text_json(layer->detail));
		json_array_append_new(layers, json);
	}
	return layers;
}

static json_t *coverage_json(const struct process *process)
{
	json_t *json = json_object();
	bool complete = !process->summary.truncated && !process->lost &&
			process->header.stopped == TRACE_STOP_NONE;

	json_object_set_new(json, "complete", json_boolean(complete));
	json_object_set(json, "text", process->coverage);
	json_object_set_new(json, "stopped", text_json(trace_stop_text(&process->header)));
	json_object_set_new(json, "recorded_ns", output_number(process->recorded_ns));
	json_object_set_new(json, "lifetime_ns", output_number(process->lifetime_ns));
	json_object_set_new(json, "ended", text_json(end_name(&process->header)));
	json_object_set_new(json, "missing_blocks",
			    json_integer((json_int_t)process->summary.missing_blocks));
	json_object_set_new(json, "damaged_frames",
			    json_integer((json_int_t)process->summary.damaged_frames));
	json_object_set_new(json, "skipped_bytes",
			    json_integer((json_int_t)process->summary.skipped_bytes));
	json_object_set_new(json, "unknown_events",
			    json_integer((json_int_t)process->summary.unknown_events));
	json_object_set_new(json, "unknown_records",
			    json_integer((json_int_t)process->summary.unknown_records));
	return json;
}

/* Paths need not be UTF-8. */
static json_t *path_json(const char *path)
{
	char *utf8 = memory_zero(3 * strlen(path) + 1, 1);
	json_t *json;

	text_to_utf8(utf8, path, strlen(path));
	json = json_string(utf8);
	free(utf8);
	return json;
}

json_t *headline_json(const struct run *run)
{
	const struct process *process = run->chosen;
	const struct definitions *definitions = &process->model.definitions;
	json_t *json = json_object(), *files = json_array();
	char *cuda = cuda_runtimes(&process->model);

	for (uint32_t i = 0; i < run->count; i++)
		json_array_append_new(files, path_json(run->processes[i].path));
	json_object_set_new(json, "files", files);
	json_object_set_new(json, "program", text_json(process->program));
	json_object_set_new(json, "command", text_json(definitions_info(definitions, "command")));
	json_object_set_new(json, "pid", json_integer(process->header.pid));
	json_object_set_new(json, "rank", text_json(process->rank));
	json_object_set_new(json, "host", text_json(definitions_info(definitions, "host")));
	json_object_set_new(json, "python", text_json(definitions_info(definitions, "python")));
	json_object_set_new(json, "torch", text_json(definitions_info(definitions, "torch")));
	json_object_set_new(json, "cuda", text_json(cuda));
	json_object_set_new(json, "device", text_json(definitions_info(definitions, "device")));
	json_object_set_new(json, "wall_ns", output_number(process->wall_ns));
	json_object_set_new(json, "threads", json_integer(process->threads));
	json_object_set_new(json, "spans", json_integer((json_int_t)process->spans));
	json_object_set_new(json, "launches", json_integer((json_int_t)process->launches));
	json_object_set_new(json, "bytes", json_integer((json_int_t)process->summary.file_bytes));
	json_object_set_new(json, "lost", json_integer((json_int_t)process->lost));
	json_object_set_new(json, "truncated", json_boolean(process->summary.truncated));
	json_object_set_new(json, "layers", layers_json(&process->model));
	json_object_set_new(json, "coverage", coverage_json(process));
	free(cuda);
	return json;
}

#define HEADLINE_ITEMS  6
#define PROCESSES_SHOWN 20

struct headline {
	char *items[HEADLINE_ITEMS];
	unsigned count;
};

static void add(struct headline *line, const char *before, const char *text)
{
	char *item;

	if (!text || asprintf(&item, "%s%s", before, text) < 0)
		return;
	line->items[line->count] = text_escape(item);
	free(item);
	/* A program's name may be of any length. */
	char *whole = line->items[line->count];
	line->items[line->count++] = text_shorten(whole, output_width() / 2, TEXT_CUT_START);
	free(whole);
}

/* What does not fit beside the wall time goes to the next line. */
static void print_items(const struct headline *line, const char *right)
{
	unsigned width = output_width(), at = 0, end = text_width(right) + 2;
	bool first = true;

	printf("%s", output_style(STYLE_HEADING));
	for (unsigned i = 0; i < line->count; i++) {
		unsigned item = text_width(line->items[i]) + 2;

		if (at && at + item + (first ? end : 0) > width) {
			if (first)
				printf("%s%*s%s", output_style(STYLE_PLAIN),
				       (int)(width - at - text_width(right)), "", right);
			printf("\n");
			first = false;
			at = 0;
		}
		printf("%s%s", at || !first ? "  " : "", line->items[i]);
		at += item - (at || !first ? 0 : 2);
	}
	if (first)
		printf("%s%*s%s", output_style(STYLE_PLAIN),
		       at + end > width ? 2 : (int)(width - at - text_width(right)), "", right);
	printf("%s\n", output_style(STYLE_PLAIN));
}

void headline_print(const struct run *run)
{
	const struct process *process = run->chosen;
	const struct definitions *definitions = &process->model.definitions;
	const char *device = definitions_info(definitions, "device");
	char wall[TEXT_NUMBER_ROOM], pid[24];
	char right[TEXT_NUMBER_ROOM + 8];
	char *cuda = cuda_runtimes(&process->model);
	struct headline line = { .count = 0 };

	snprintf(pid, sizeof(pid), "%u", process->header.pid);
	snprintf(right, sizeof(right), "wall %s", text_ns(wall, process->wall_ns));
	add(&line, "", process->program ? process->program : "?");
	add(&line, "pid ", pid);
	add(&line, "rank ", process->rank);
	add(&line, "python ", definitions_info(definitions, "python"));
	add(&line, "torch ", definitions_info(definitions, "torch"));
	add(&line, "", device ? device : cuda);
	print_items(&line, right);
	coverage_print(process->coverage);
	for (unsigned i = 0; i < line.count; i++)
		free(line.items[i]);
	free(cuda);
}

static void add_note(json_t *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_note(json_t *notes, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	json_t *note = json_vsprintf(format, arguments);
	if (note)
		json_array_append_new(notes, note);
	va_end(arguments);
}

/* Layers that are on where nobody says otherwise. */
static bool is_default(const struct def_layer *layer)
{
	return !strcmp(layer->name, "frames") || !strcmp(layer->name, "ops") ||
	       !strcmp(layer->name, "cuda");
}

static bool library_calls(const struct model *model)
{
	for (uint32_t i = 1; i < model->definitions.function_count; i++)
		if (model->definitions.functions[i].category == TRACE_CATEGORY_LIBRARY)
			return true;
	return false;
}

static void add_weight_note(json_t *notes, const struct model *model)
{
	switch (model->weights.source) {
	case WEIGHT_UNKNOWN:
		add_note(notes, "not calibrated: tare's own weight is still in these figures");
		break;
	case WEIGHT_START:
		add_note(notes, "not calibrated: of tare's own weight only what C code alone can "
				"tell is taken out, not what it costs the interpreter; 'tare "
				"calibrate' measures that");
		break;
	case WEIGHT_LATER:
		add_note(notes, "the trace was not calibrated; tare's own weight is taken out by "
				"what this machine has kept for that interpreter");
		break;
	case WEIGHT_CALIBRATED: break;
	}
}

static const char *layer_detail(const struct model *model, const char *name)
{
	for (uint32_t i = 0; i < model->definitions.layer_count; i++)
		if (!strcmp(model->definitions.layers[i].name, name))
			return model->definitions.layers[i].detail;
	return "";
}

static void add_device_notes(json_t *notes, const struct model *model)
{
	const struct devices *devices = &model->devices;

	if (!device_known(devices))
		return;
	if (definitions_layer_off(&model->definitions, "gpu"))
		add_note(notes, "what devices did is known for a part of the run: %s",
			 layer_detail(model, "gpu"));
	if (devices->unmatched)
		add_note(notes, "of %lu kernels, copies and sets it is not known what called them",
			 devices->unmatched);
	if (devices->late)
		add_note(notes, "%lu records of devices came too late to be put in order",
			 devices->late);
}

json_t *notes_json(const struct run *run)
{
	const struct process *process = run->chosen;
	const struct model *model = &process->model;
	json_t *notes = json_array();

	if (model->resyncs)
		add_note(notes, "events are missing in %lu places: times around them are in other",
			 model->resyncs);
	for (uint32_t i = 0; i < model->definitions.layer_count; i++) {
		const struct def_layer *layer = &model->definitions.layers[i];

		if (layer->state == LAYER_FAILED ||
		    (layer->state == LAYER_OFF && is_default(layer)))
			add_note(notes, "%s %s: %s", layer->name,
				 layer_states[layer->state < 3 ? layer->state : 3], layer->detail);
	}
	if (process->launches && !model->has_library && !device_known(&model->devices))
		add_note(
			notes,
			"calls of cuBLAS, cuDNN and NCCL are not seen: their time is framework, and "
			"their launches are not counted");
	if (library_calls(model) && !device_known(&model->devices))
		add_note(notes,
			 "what cuBLAS, cuDNN and NCCL launch is not seen: their calls are timed, "
			 "but their launches are not counted");
	add_device_notes(notes, model);
	add_weight_note(notes, model);
	add_note(notes, "the operator table is of the whole run");
	return notes;
}

void notes_print(const struct run *run)
{
	json_t *notes = notes_json(run), *note;
	size_t i;

	json_array_foreach(notes, i, note)
	{
		char *safe = text_escape(json_string_value(note));

		printf("%s%s", output_style(STYLE_FAINT), i ? "     " : "note:");
		output_wrapped(safe, 5, 6);
		printf("%s\n", output_style(STYLE_PLAIN));
		free(safe);
	}
	json_decref(notes);
}

enum {
	COLUMN_PROGRAM,
	COLUMN_FILE,
	COLUMN_PID,
	COLUMN_RANK,
	COLUMN_WALL,
	COLUMN_THREADS,
	COLUMN_SPANS,
	COLUMN_OPS,
	COLUMN_LAUNCHES,
	COLUMN_WAIT,
	COLUMN_LOST,
	COLUMN_TRUNCATED,
	COLUMN_STOPPED,
	COLUMN_CHOSEN,
	COLUMNS,
};

static const struct column columns[] = {
	[COLUMN_PROGRAM] = { "program", "", COLUMN_TEXT, 0, false },
	[COLUMN_FILE] = { "file", "file", COLUMN_PATH, 8, false },
	[COLUMN_PID] = { "pid", "pid", COLUMN_ID, 0, false },
	[COLUMN_RANK] = { "rank", "rank", COLUMN_TEXT, 0, false },
	[COLUMN_WALL] = { "wall_ns", "wall", COLUMN_TIME, 0, false },
	[COLUMN_THREADS] = { "threads", "threads", COLUMN_COUNT, 6, false },
	[COLUMN_SPANS] = { "spans", "spans", COLUMN_COUNT, 5, false },
	[COLUMN_OPS] = { "ops", "ops", COLUMN_COUNT, 4, false },
	[COLUMN_LAUNCHES] = { "launches", "launches", COLUMN_COUNT, 0, false },
	[COLUMN_WAIT] = { "wait_ns", "wait", COLUMN_TIME, 3, false },
	[COLUMN_LOST] = { "lost", "lost", COLUMN_COUNT, 7, false },
	[COLUMN_TRUNCATED] = { "truncated", NULL, COLUMN_FLAG, 0, false },
	[COLUMN_STOPPED] = { "stopped", "stopped early", COLUMN_TEXT, 8, false },
	[COLUMN_CHOSEN] = { "chosen", "in full", COLUMN_FLAG, 0, false },
};

/* The first `count` of them. */
static struct table *processes_table(const struct run *run, const struct process *const *processes,
				     uint32_t count)
{
	struct table *table = table_new(columns, COLUMNS);

	for (uint32_t i = 0; i < count; i++) {
		const struct process *process = processes[i];

		table_add_row(table);
		table_set_text(table, COLUMN_PROGRAM, process->program ? process->program : "?");
		table_set_text(table, COLUMN_FILE, process->path);
		table_set_number(table, COLUMN_PID, process->header.pid);
		table_set_text(table, COLUMN_RANK, process->rank);
		table_set_number(table, COLUMN_WALL, process->wall_ns);
		table_set_number(table, COLUMN_THREADS, process->threads);
		table_set_number(table, COLUMN_SPANS, (double)process->spans);
		table_set_number(table, COLUMN_OPS, (double)process->ops);
		table_set_number(table, COLUMN_LAUNCHES, (double)process->launches);
		table_set_number(table, COLUMN_WAIT, process->wait_ns);
		table_set_number(table, COLUMN_LOST, (double)process->lost);
		table_set_number(table, COLUMN_TRUNCATED, process->summary.truncated);
		table_set_text(table, COLUMN_STOPPED, trace_stop_text(&process->header));
		table_set_number(table, COLUMN_CHOSEN, process == run->chosen);
	}
	return table;
}

static const struct process **list_processes(const struct run *run)
{
	const struct process **list = memory_zero(run->count, sizeof(*list));

	for (uint32_t i = 0; i < run->count; i++)
		list[i] = &run->processes[i];
	return list;
}

json_t *processes_json(const struct run *run)
{
	const struct process **list = list_processes(run);
	struct table *table = processes_table(run, list, run->count);
	json_t *json = table_json(table);

	table_free(table);
	free(list);
	return json;
}

/* What does most first; of what does the same, in the order of the files. */
static int order_processes(const void *a, const void *b)
{
	const struct process *one = *(const struct process *const *)a;
	const struct process *other = *(const struct process *const *)b;

	if (process_does_more(one, other) || process_does_more(other, one))
		return process_does_more(one, other) ? -1 : 1;
	return (one > other) - (one < other);
}

void processes_print(const struct run *run)
{
	const struct process **list = list_processes(run);
	uint32_t shown = run->count > PROCESSES_SHOWN ? PROCESSES_SHOWN : run->count;

	if (shown < run->count)
		qsort(list, run->count, sizeof(*list), order_processes);
	struct table *table = processes_table(run, list, shown);
	table_print_text(table, "processes of this run", stdout);
	if (shown < run->count)
		printf("  … and %u more that did less: --format json has all, --pid chooses one\n",
		       run->count - shown);
	table_free(table);
	free(list);
}
