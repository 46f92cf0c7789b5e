/* cmd_info.c: `tare info`: what a trace is of, what is in it, what is missing, and how it ended. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyzer/coverage.h"
#include "analyzer/definitions.h"
#include "analyzer/display.h"
#include "analyzer/message.h"
#include "analyzer/options.h"
#include "analyzer/run.h"
#include "analyzer/table.h"

#define LOSSES_MAX 1000 /* told one by one: a writer tells of a thread's once */

int cmd_info(int argc, char **argv);

struct thread_counts {
	uint64_t events, spans, first, last;
};

/* A trace, looked through once. */
struct info {
	const char *path;
	const struct trace_header *header;
	const struct trace_summary *summary;
	struct definitions definitions;
	struct thread_counts *threads; /* by index in definitions */
	uint32_t thread_room;
	const char *names[TRACE_EVENT_CODES];
	bool is_span[TRACE_EVENT_CODES]; /* of the program: tare's own are none */
	uint64_t kinds[TRACE_EVENT_CODES], spans, lost, records;
	json_t *losses, *coverage;
	double unit_ns;
};

static int visit_loss(void *context, unsigned type, const union trace_record *record,
		      const uint8_t *bytes, size_t length)
{
	struct info *info = context;

	(void)bytes;
	(void)length;
	info->records++;
	if (type != TRACE_RECORD_LOST || !record || json_array_size(info->losses) >= LOSSES_MAX)
		return 0;
	const char *reason = arena_text(&info->definitions.arena, record->LOST.reason.data,
					record->LOST.reason.length);
	json_array_append_new(info->losses,
			      json_pack("{s:I, s:I, s:s}", "thread",
					(json_int_t)record->LOST.thread, "events",
					(json_int_t)record->LOST.events, "reason", reason));
	return 0;
}

static void count_batch(struct info *info, const struct trace_batch *batch)
{
	uint32_t index = definitions_thread(&info->definitions, batch->thread);
	uint64_t spans = 0;

	if (index >= info->thread_room)
		info->threads = memory_grow_(info->threads, &info->thread_room, index + 1,
					     sizeof(*info->threads));
	for (uint32_t i = 0; i < batch->count; i++) {
		info->kinds[batch->events[i].code]++;
		spans += info->is_span[batch->events[i].code];
	}
	struct thread_counts *thread = &info->threads[index];
	if (!thread->events)
		thread->first = batch->events[0].time;
	thread->last = batch->events[batch->count - 1].time;
	thread->events += batch->count;
	thread->spans += spans;
	info->spans += spans;
}

static void look_through(struct info *info, struct trace_reader *reader)
{
	struct trace_batch batch;

	info->header = trace_get_header(reader);
	info->summary = trace_get_summary(reader);
	info->unit_ns = trace_unit_ns(reader);
	info->losses = json_array();
	definitions_load(&info->definitions, reader);
	trace_each_record(reader, visit_loss, info);
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		const struct trace_event_desc *desc = trace_event_described(reader, code);

		info->names[code] = desc ? desc->name : NULL;
		info->is_span[code] =
			desc && code != TRACE_TARE &&
			(desc->kind == TRACE_KIND_SPAN || desc->kind == TRACE_KIND_LOOSE);
	}
	while (trace_next_batch(reader, &batch))
		count_batch(info, &batch);
	info->lost = info->header->lost_events > info->definitions.lost_events ?
			     info->header->lost_events :
			     info->definitions.lost_events;
	info->coverage = coverage_lines(reader, info->lost);
}

static void info_free(struct info *info)
{
	json_decref(info->losses);
	json_decref(info->coverage);
	free(info->threads);
	definitions_free(&info->definitions);
}

/* Of the events alone: definitions do not grow with the run. */
static double bytes_per_span(const struct info *info)
{
	return info->spans ? (double)info->summary->event_bytes / (double)info->spans : NAN;
}

static double since_start(const struct info *info, uint64_t units)
{
	return (double)(int64_t)(units - info->header->open.units) * info->unit_ns;
}

enum {
	THREAD_FILE,
	THREAD_PID,
	THREAD_NUMBER,
	THREAD_NAME,
	THREAD_TID,
	THREAD_DEPTH,
	THREAD_EVENTS,
	THREAD_SPANS,
	THREAD_FIRST,
	THREAD_LAST,
	THREAD_COLUMNS
};

static const struct column thread_columns[] = {
	[THREAD_FILE] = { "file", NULL, COLUMN_PATH, 0, false },
	[THREAD_PID] = { "pid", NULL, COLUMN_ID, 0, false },
	[THREAD_NUMBER] = { "thread", "", COLUMN_COUNT, 0, false },
	[THREAD_NAME] = { "name", "name", COLUMN_TEXT, 0, false },
	[THREAD_TID] = { "tid", NULL, COLUMN_COUNT, 0, false },
	[THREAD_DEPTH] = { "depth", NULL, COLUMN_COUNT, 0, false },
	[THREAD_EVENTS] = { "events", "events", COLUMN_COUNT, 0, false },
	[THREAD_SPANS] = { "spans", "spans", COLUMN_COUNT, 0, false },
	[THREAD_FIRST] = { "first_ns", "first", COLUMN_TIME, 2, false },
	[THREAD_LAST] = { "last_ns", "last", COLUMN_TIME, 1, false },
};

static void add_threads(struct table *table, const struct info *info)
{
	for (uint32_t i = 1; i < info->definitions.thread_count; i++) {
		const struct def_thread *thread = &info->definitions.threads[i];
		struct thread_counts none = { 0 };
		const struct thread_counts *counts = i < info->thread_room ? &info->threads[i] :
									     &none;

		table_add_row(table);
		table_set_text(table, THREAD_FILE, info->path);
		table_set_number(table, THREAD_PID, info->header->pid);
		table_set_number(table, THREAD_NUMBER, thread->number);
		table_set_text(table, THREAD_NAME, thread->name);
		table_set_number(table, THREAD_TID, thread->tid);
		table_set_number(table, THREAD_DEPTH, thread->depth);
		table_set_number(table, THREAD_EVENTS, (double)counts->events);
		table_set_number(table, THREAD_SPANS, (double)counts->spans);
		if (counts->events) {
			table_set_number(table, THREAD_FIRST, since_start(info, counts->first));
			table_set_number(table, THREAD_LAST, since_start(info, counts->last));
		}
	}
}

static struct table *threads_table(const struct info *info)
{
	struct table *table = table_new(thread_columns, THREAD_COLUMNS);

	add_threads(table, info);
	return table;
}

static const char *const layer_states[] = { "off", "on", "failed", "unknown" };

static const char *layer_state(const struct def_layer *layer)
{
	return layer_states[layer->state < LAYER_UNKNOWN ? layer->state : LAYER_UNKNOWN];
}

static const char *clock_name(const struct trace_header *header)
{
	return header->clock == TRACE_CLOCK_TSC       ? "TSC" :
	       header->clock == TRACE_CLOCK_MONOTONIC ? "CLOCK_MONOTONIC" :
							"unknown";
}

/* Each kind of damage, once: a name in JSON, and what text says of it. */
#define DAMAGES(DAMAGE)                                                                            \
	DAMAGE(skipped_bytes, "bytes between frames")                                              \
	DAMAGE(damaged_frames, "damaged frames")                                                   \
	DAMAGE(missing_blocks, "blocks missing")                                                   \
	DAMAGE(cut_bytes, "bytes of an incomplete frame at the end")                               \
	DAMAGE(unknown_events, "blocks end at an event that nothing describes")

/* ---------------------------------------------------------------- JSON */

static json_t *text_json(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *count_json(uint64_t count)
{
	return json_integer((json_int_t)count);
}

static json_t *info_json(const struct info *info)
{
	const struct trace_header *header = info->header;
	const struct trace_summary *summary = info->summary;
	const struct definitions *definitions = &info->definitions;
	json_t *facts = json_object(), *layers = json_array(), *kinds = json_object();
	struct table *threads = threads_table(info);
	char *path = memory_zero(3 * strlen(info->path) + 1, 1);

	text_to_utf8(path, info->path, strlen(info->path));
	for (uint32_t i = 0; i < definitions->info_count; i++)
		json_object_set_new(facts, definitions->infos[i].key,
				    text_json(definitions->infos[i].value));
	for (uint32_t i = 0; i < definitions->layer_count; i++)
		json_array_append_new(layers, json_pack("{s:s, s:s, s:s}", "layer",
							definitions->layers[i].name, "state",
							layer_state(&definitions->layers[i]),
							"detail", definitions->layers[i].detail));
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++)
		if (info->kinds[code])
			json_object_set_new(kinds, info->names[code],
					    count_json(info->kinds[code]));
	json_t *json = json_pack("{s:s, s:i, s:I, s:I, s:f, s:s, s:i, s:f}", "file", path, "format",
				 header->version, "pid", (json_int_t)header->pid, "parent_pid",
				 (json_int_t)header->parent_pid, "started_s",
				 (double)header->start_realtime_ns / 1e9, "clock",
				 clock_name(header), "clock_shift", header->clock_shift, "unit_ns",
				 info->unit_ns);
	json_object_set_new(json, "info", facts);
	json_object_set_new(json, "layers", layers);
	json_object_set_new(json, "threads", table_json(threads));
	json_object_set_new(json, "events", count_json(summary->events));
	json_object_set_new(json, "live_events", count_json(summary->live_events));
	json_object_set_new(json, "events_by_kind", kinds);
	json_object_set_new(json, "records", count_json(info->records));
	json_object_set_new(json, "spans", count_json(info->spans));
	json_object_set_new(json, "bytes", count_json(summary->file_bytes));
	json_object_set_new(json, "event_bytes", count_json(summary->event_bytes));
	json_object_set_new(json, "definition_bytes", count_json(summary->definition_bytes));
	json_object_set_new(json, "bytes_per_span",
			    info->spans ? json_real(round(bytes_per_span(info) * 100) / 100) :
					  json_null());
	json_object_set_new(json, "frames", count_json(summary->frames));
	json_object_set_new(json, "lost", count_json(info->lost));
	json_object_set(json, "losses", info->losses);
	json_object_set(json, "coverage", info->coverage);
	json_object_set_new(json, "negative_steps", count_json(header->negative_steps));
	json_object_set_new(json, "stopped", text_json(trace_stop_text(header)));
	json_object_set_new(json, "stop_error",
			    text_json(header->stop_errno ? strerror((int)header->stop_errno) :
							   NULL));
	json_object_set_new(json, "ended", text_json(trace_end_text(header)));
	json_object_set_new(json, "truncated", json_boolean(summary->truncated));
#define DAMAGE(field, text) json_object_set_new(json, #field, count_json(summary->field));
	DAMAGES(DAMAGE)
#undef DAMAGE
	json_object_set_new(json, "duplicate_blocks", count_json(summary->duplicate_blocks));
	json_object_set_new(json, "unknown_records", count_json(summary->unknown_records));
	table_free(threads);
	free(path);
	return json;
}

/* ---------------------------------------------------------------- text */

static void print_line(const char *title, const char *text)
{
	char *safe_title = text_escape(title), *safe = text_escape(text);

	/* Paths are not broken: they are there to be copied. */
	printf("  %-9s", safe_title);
	output_wrapped(safe, 11, 14);
	putchar('\n');
	free(safe_title);
	free(safe);
}

static void print_head(const struct info *info)
{
	const struct trace_header *header = info->header;
	const struct definitions *definitions = &info->definitions;
	char *path = text_escape(info->path), started[64] = "?", line[128];
	time_t seconds = (time_t)(header->start_realtime_ns / 1000000000u);
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(started, sizeof(started), "%Y-%m-%d %H:%M:%S %z", &local);
	printf("%s%s%s\n", output_style(STYLE_HEADING), path, output_style(STYLE_PLAIN));
	snprintf(line, sizeof(line), "pid %u, child of %u, started %s", header->pid,
		 header->parent_pid, started);
	print_line("process", line);
	for (uint32_t i = 0; i < definitions->info_count; i++) {
		const struct def_info *fact = &definitions->infos[i];

		/* A later one of the same key replaces the earlier. */
		if (definitions_info(definitions, fact->key) == fact->value)
			print_line(fact->key, fact->value);
	}
	for (uint32_t i = 0; i < definitions->layer_count; i++) {
		const struct def_layer *layer = &definitions->layers[i];
		char *name = text_escape(layer->name), *detail = text_escape(layer->detail);

		printf("  %-10s%-12s %-7s", i ? "" : "layers", name, layer_state(layer));
		output_wrapped(detail, 32, 35);
		putchar('\n');
		free(name);
		free(detail);
	}
	free(path);
}

static void print_size(const struct info *info)
{
	const struct trace_summary *summary = info->summary;
	char size[TEXT_NUMBER_ROOM], events[TEXT_NUMBER_ROOM], spans[TEXT_NUMBER_ROOM];

	printf("  %-10s%s, %s events, %s spans", "size",
	       text_bytes(size, (double)summary->file_bytes),
	       text_count(events, (double)summary->events), text_count(spans, (double)info->spans));
	if (info->spans)
		printf(", %.2f bytes a span", bytes_per_span(info));
	printf("\n  %-10sdefinitions %s", "", text_bytes(size, (double)summary->definition_bytes));
	printf("\n  %-10s%u, clock %s, %.4f ns a unit", "format", info->header->version,
	       clock_name(info->header), info->unit_ns);
	if (info->header->negative_steps)
		printf(", went backwards %lu times", info->header->negative_steps);
	putchar('\n');
}

static void print_missing(const struct info *info)
{
	const struct trace_summary *summary = info->summary;
	const struct trace_header *header = info->header;
	const char *separator = "";
	json_t *loss, *line;
	size_t i;

	json_array_foreach(info->coverage, i, line) print_line("coverage", json_string_value(line));
	printf("  %-10s%lu events\n", "lost", info->lost);
	json_array_foreach(info->losses, i, loss)
	{
		char *reason = text_escape(json_string_value(json_object_get(loss, "reason")));

		printf("  %-10s%lld of thread %lld: %s\n", "",
		       json_integer_value(json_object_get(loss, "events")),
		       json_integer_value(json_object_get(loss, "thread")), reason);
		free(reason);
	}
	printf("  %-10s", "damage");
#define DAMAGE(field, text)                                                                        \
	if (summary->field) {                                                                      \
		printf("%s%lu %s", separator, summary->field, text);                               \
		separator = ", ";                                                                  \
	}
	DAMAGES(DAMAGE)
#undef DAMAGE
	puts(*separator ? "" : "none");
	if (summary->unknown_records)
		printf("  %-10s%lu records of kinds that this version does not know\n", "unknown",
		       summary->unknown_records);
	if (header->stopped != TRACE_STOP_NONE)
		printf("  %-10s%s%s%s\n", "stopped", trace_stop_text(header),
		       header->stop_errno ? ": " : "",
		       header->stop_errno ? strerror((int)header->stop_errno) : "");
	print_line("ended", header->ended != TRACE_END_NONE ? trace_end_text(header) :
							      "killed, or still running");
}

static void print_info(const struct info *info)
{
	struct table *threads = threads_table(info);

	print_head(info);
	print_size(info);
	print_missing(info);
	if (table_rows(threads))
		table_print_text(threads, "thread", stdout);
	table_free(threads);
}

/* ---------------------------------------------------------------- the command */

static bool is_wanted(const struct info *info, const struct trace_options *options)
{
	const char *rank = definitions_info(&info->definitions, "rank");

	return (options->pid < 0 || info->header->pid == options->pid) &&
	       (options->rank < 0 || (rank && strtol(rank, NULL, 10) == options->rank));
}

/* Prints a trace as text, and adds it to what JSON and CSV print. */
static int show(const char *path, const struct trace_options *options, json_t *all,
		struct table *threads)
{
	char message[512];
	struct trace_reader *reader = trace_open(path, NULL, message, sizeof(message));
	struct info info = { .path = path };

	if (!reader)
		return complain("%s", message);
	look_through(&info, reader);
	if (is_wanted(&info, options)) {
		coverage_warn(info.coverage, path);
		if (options->format == FORMAT_TEXT)
			print_info(&info);
		json_array_append_new(all, info_json(&info));
		add_threads(threads, &info);
	}
	info_free(&info);
	trace_close(reader);
	return STATUS_FINE;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct trace_options *options = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = options; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int cmd_info(int argc, char **argv)
{
	static const struct argp_child children[] = { { &trace_options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "FILE...",
		.children = children,
		.doc = "What traces are of, what is in them, what is missing, and how they ended. CSV has their "
		       "threads.",
	};
	struct trace_options options = TRACE_OPTIONS_NONE;
	struct run run = { 0 };
	int status;

	if (options_parse(&argp, 0, argc, argv, &options, &status) != 0)
		return status;
	status = run_find(&run, options.files, options.file_count, argv[0]);
	json_t *all = json_array();
	struct table *threads = table_new(thread_columns, THREAD_COLUMNS);
	for (uint32_t i = 0; i < run.path_count; i++)
		status |= show(run.paths[i], &options, all, threads);
	if (!json_array_size(all) && status == STATUS_FINE)
		status = complain("no trace of that process among them");
	else if (options.format == FORMAT_JSON && json_array_size(all))
		output_json(json_pack("{s:O}", "traces", all));
	else if (options.format == FORMAT_CSV && json_array_size(all))
		table_print_csv(threads, stdout);
	table_free(threads);
	json_decref(all);
	run_free(&run);
	free(options.files);
	return status;
}
