/*
 * dump.c: see dump.h.
 *
 * A thread has a stack of open spans, LOOSE ones included: it gives the indentation, and what a leave
 * leaves. After a gap the stack is what the block says.
 */
#include "analyzer/dump.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/memory.h"

/* Which field of an event holds the id of which record, and that record's field to show for it. */
static const struct reference {
	const char *field;
	unsigned type;
	const char *shown;
} references[] = {
	{ "code", TRACE_RECORD_CODE, "name" },         { "op", TRACE_RECORD_OP, "symbol" },
	{ "function", TRACE_RECORD_FUNCTION, "name" }, { "type", TRACE_RECORD_NODE_TYPE, "name" },
	{ "name", TRACE_RECORD_STRING, "text" },
};

#define REFERENCES (sizeof(references) / sizeof(*references))

/* What a record calls the thing of an id, ready to be printed. */
struct name {
	unsigned type;
	uint32_t id, order;
	char *text;
};

struct open_span {
	unsigned code;
	bool unknown; /* its enter is not in the trace */
	uint64_t time;
	const struct name *name;
};

struct dump_thread {
	uint32_t thread, count, room, spans; /* spans: SPAN kinds in the stack */
	struct open_span *stack;
};

struct dump {
	const struct dump_options *options;
	struct trace_reader *reader;
	FILE *out;
	struct name *names;
	uint32_t name_count, name_room;
	struct dump_thread *threads; /* by number */
	uint32_t thread_count, thread_room;
	const struct reference *event_references[TRACE_EVENT_CODES][TRACE_FIELDS_MAX];
	uint64_t start;
	double unit_ns;
};

/* For text: escaped; for JSON: a quoted string. Valid UTF-8 in both. */
static char *printable(const struct dump *dump, struct trace_str bytes)
{
	size_t length = text_to_utf8(NULL, bytes.data, bytes.length);
	char *utf8 = memory_zero(length + 1, 1);
	char *result = NULL;

	text_to_utf8(utf8, bytes.data, bytes.length);
	if (dump->options->json) {
		json_t *string = json_stringn(utf8, length);

		result = json_dumps(string, JSON_ENCODE_ANY);
		json_decref(string);
		if (!result)
			result = strcpy(memory_zero(3, 1), "\"\"");
	} else {
		result = text_escape(utf8);
	}
	free(utf8);
	return result;
}

/* ---------------------------------------------------------------- records */

static void print_hex(FILE *out, const uint8_t *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		fputc(digits[bytes[i] >> 4], out);
		fputc(digits[bytes[i] & 15], out);
	}
}

static void print_record_field(struct dump *dump, enum trace_field_type type, const char *name,
			       const void *value)
{
	FILE *out = dump->out;
	const struct trace_str *string = value;
	const char *quote = dump->options->json ? "\"" : "";

	fprintf(out, dump->options->json ? ", \"%s\": " : " %s=", name);
	switch (type) {
	case TRACE_u8: fprintf(out, "%u", *(const uint8_t *)value); break;
	case TRACE_u16: fprintf(out, "%u", *(const uint16_t *)value); break;
	case TRACE_u32: fprintf(out, "%" PRIu32, *(const uint32_t *)value); break;
	case TRACE_u64: fprintf(out, "%" PRIu64, *(const uint64_t *)value); break;
	case TRACE_i64: fprintf(out, "%" PRIi64, *(const int64_t *)value); break;
	case TRACE_str: {
		char *text = printable(dump, *string);

		fputs(text, out);
		free(text);
		break;
	}
	case TRACE_blob:
		fputs(quote, out);
		print_hex(out, (const uint8_t *)string->data, string->length);
		fputs(quote, out);
		break;
	}
}

/* Remembers what events call by the record's id. */
static void keep_name(struct dump *dump, unsigned type, const union trace_record *record)
{
	const struct trace_record_desc *desc = &trace_record_descs[type];

	for (unsigned r = 0; r < REFERENCES; r++) {
		size_t offset = 0;

		for (unsigned i = 0; references[r].type == type && i < desc->field_count; i++) {
			const void *value = (const char *)record +
					    trace_field_place(desc->fields[i].type, &offset);

			if (strcmp(desc->fields[i].name, references[r].shown))
				continue;
			memory_grow(dump->names, dump->name_count, dump->name_room);
			dump->names[dump->name_count] = (struct name){
				.type = type,
				.id = *(const uint32_t *)
					      record, /* the first field of all of these */
				.order = dump->name_count,
				.text = printable(dump, *(const struct trace_str *)value),
			};
			dump->name_count++;
		}
	}
}

static int visit_record(void *context, unsigned type, const union trace_record *record,
			const uint8_t *bytes, size_t length)
{
	struct dump *dump = context;
	size_t offset = 0;

	if (record && dump->options->events)
		keep_name(dump, type, record);
	if (!dump->options->records)
		return 0;
	if (record) {
		const struct trace_record_desc *desc = &trace_record_descs[type];

		fprintf(dump->out, dump->options->json ? "{\"record\": \"%s\"" : "%s", desc->name);
		for (unsigned i = 0; i < desc->field_count; i++)
			print_record_field(dump, desc->fields[i].type, desc->fields[i].name,
					   (const char *)record +
						   trace_field_place(desc->fields[i].type,
								     &offset));
	} else {
		fprintf(dump->out,
			dump->options->json ? "{\"record\": %u, \"bytes\": \"" :
					      "record %u unknown ",
			type);
		print_hex(dump->out, bytes, length);
		if (dump->options->json)
			putc('"', dump->out);
	}
	fputs(dump->options->json ? "}\n" : "\n", dump->out);
	return ferror(dump->out) ? -1 : 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static const struct name *find_name(const struct dump *dump, unsigned type, uint64_t id)
{
	uint32_t low = 0, high = dump->name_count;

	/* The last one: a later record replaces the earlier. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct name *name = &dump->names[middle];

		if (name->type < type || (name->type == type && name->id <= id))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || dump->names[low - 1].type != type || dump->names[low - 1].id != id)
		return NULL;
	return &dump->names[low - 1];
}

/* ---------------------------------------------------------------- events */

static struct dump_thread *find_thread(struct dump *dump, uint32_t number)
{
	uint32_t low = 0, high = dump->thread_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (dump->threads[middle].thread < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < dump->thread_count && dump->threads[low].thread == number)
		return &dump->threads[low];
	memory_grow(dump->threads, dump->thread_count, dump->thread_room);
	memmove(&dump->threads[low + 1], &dump->threads[low],
		(dump->thread_count - low) * sizeof(*dump->threads));
	dump->thread_count++;
	dump->threads[low] = (struct dump_thread){ .thread = number };
	return &dump->threads[low];
}

static enum trace_event_kind kind_of(const struct dump *dump, unsigned code)
{
	const struct trace_event_desc *desc = trace_event_described(dump->reader, code);

	return desc ? desc->kind : TRACE_KIND_MARK;
}

static void push(struct dump_thread *thread, struct open_span span, enum trace_event_kind kind)
{
	memory_grow(thread->stack, thread->count, thread->room);
	thread->stack[thread->count++] = span;
	thread->spans += kind == TRACE_KIND_SPAN;
}

/* Removes up to `count` LOOSE spans that are innermost. */
static void pop_loose(const struct dump *dump, struct dump_thread *thread, uint64_t count)
{
	for (; count && thread->count; count--) {
		const struct open_span *top = &thread->stack[thread->count - 1];

		if (top->unknown || kind_of(dump, top->code) != TRACE_KIND_LOOSE)
			return;
		thread->count--;
	}
}

/* Removes the innermost SPAN, and LOOSE ones in it. NULL: none is open. */
static const struct open_span *pop_span(const struct dump *dump, struct dump_thread *thread)
{
	pop_loose(dump, thread, UINT64_MAX);
	if (!thread->count)
		return NULL;
	thread->spans--;
	return &thread->stack[--thread->count];
}

/* `depth` spans are open: drops those that are not, and puts unknown ones in place of the unseen. */
static void set_depth(const struct dump *dump, struct dump_thread *thread, uint64_t depth)
{
	/* A depth that no program has is damage. */
	const uint64_t depth_max = 1u << 20;

	while (thread->spans > depth)
		pop_span(dump, thread);
	while (thread->spans < depth && depth <= depth_max)
		push(thread, (struct open_span){ .unknown = true }, TRACE_KIND_SPAN);
}

static int64_t in_ns(const struct dump *dump, uint64_t units)
{
	/* Units may be anything that 64 bits hold: stay within what a number of ns can be. */
	double ns = (double)(int64_t)units * dump->unit_ns;

	return llround(fmax(fmin(ns, 9e18), -9e18));
}

static void print_field(const struct dump *dump, const struct trace_event *event, unsigned i)
{
	const struct trace_event_desc *desc = trace_event_described(dump->reader, event->code);
	const struct reference *reference = dump->event_references[event->code][i];
	const struct name *name = reference ? find_name(dump, reference->type, event->fields[i]) :
					      NULL;

	if (dump->options->json) {
		fprintf(dump->out, ", \"%s\": %" PRIu64, desc->fields[i].name, event->fields[i]);
		if (name)
			fprintf(dump->out, ", \"%s_%s\": %s", desc->fields[i].name,
				reference->shown, name->text);
	} else {
		fprintf(dump->out, " %s=%" PRIu64, desc->fields[i].name, event->fields[i]);
		if (name)
			fprintf(dump->out, ":%s", name->text);
	}
}

static void print_left(const struct dump *dump, const struct open_span *span, uint64_t time)
{
	const struct trace_event_desc *desc =
		span->unknown ? NULL : trace_event_described(dump->reader, span->code);
	int64_t ns = in_ns(dump, time - span->time);
	const char *name = span->name ? span->name->text : NULL;

	if (!desc)
		return;
	if (dump->options->json) {
		fprintf(dump->out, ", \"of\": \"%s\", \"duration_ns\": %" PRIi64, desc->name, ns);
		if (name)
			fprintf(dump->out, ", \"of_name\": %s", name);
	} else {
		fprintf(dump->out, "  (%s%s%s, %" PRIi64 " ns)", desc->name, name ? " " : "",
			name ? name : "", ns);
	}
}

static void print_event(struct dump *dump, struct dump_thread *thread,
			const struct trace_event *event)
{
	const struct trace_event_desc *desc = trace_event_described(dump->reader, event->code);
	const struct reference *reference = dump->event_references[event->code][0];
	bool shown = dump->options->events &&
		     (!dump->options->thread || dump->options->thread == (long)thread->thread);
	const struct open_span *left = NULL;
	int64_t ns = in_ns(dump, event->time - dump->start);

	/* What ends is gone before the line is printed, what begins comes after it. */
	if (event->code == TRACE_LEAVE)
		left = pop_span(dump, thread);
	else if (event->code == TRACE_LEAVE_TO)
		set_depth(dump, thread, event->fields[0]);
	else if (event->code == TRACE_OP)
		pop_loose(dump, thread, event->fields[1]);
	else if (event->code == TRACE_OP_OVER)
		pop_loose(dump, thread, event->fields[0]);
	if (shown) {
		if (dump->options->json)
			fprintf(dump->out,
				"{\"event\": \"%s\", \"thread\": %" PRIu32 ", \"time_ns\": %" PRIi64
				", \"level\": %" PRIu32,
				desc->name, thread->thread, ns, thread->count);
		else
			fprintf(dump->out, "%14" PRIi64 " ns  t%-3" PRIu32 " %*s%s", ns,
				thread->thread, (int)(2 * (thread->count % 100)), "", desc->name);
		for (unsigned i = 0; i < event->field_count; i++)
			print_field(dump, event, i);
		if (left)
			print_left(dump, left, event->time);
		fputs(dump->options->json ? "}\n" : "\n", dump->out);
	}
	if (desc->kind == TRACE_KIND_SPAN || desc->kind == TRACE_KIND_LOOSE)
		push(thread,
		     (struct open_span){
			     .code = event->code,
			     .time = event->time,
			     .name = reference ?
					     find_name(dump, reference->type, event->fields[0]) :
					     NULL,
		     },
		     desc->kind);
}

static int dump_events(struct dump *dump)
{
	struct trace_batch batch;

	while (trace_next_batch(dump->reader, &batch)) {
		struct dump_thread *thread = find_thread(dump, batch.thread);

		if (batch.gap && dump->options->events)
			fprintf(dump->out,
				dump->options->json ? "{\"gap\": %" PRIu64 ", \"thread\": %" PRIu32
						      "}\n" :
						      "events are missing before block %" PRIu64
						      " of thread %" PRIu32 "\n",
				batch.block, batch.thread);
		if (batch.block_start && thread->spans != batch.depth)
			set_depth(dump, thread, batch.depth);
		for (uint32_t i = 0; i < batch.count; i++)
			print_event(dump, thread, &batch.events[i]);
		if (ferror(dump->out))
			return -1;
	}
	return 0;
}

static void find_references(struct dump *dump)
{
	for (unsigned code = 0; code < TRACE_EVENT_CODES; code++) {
		const struct trace_event_desc *desc = trace_event_described(dump->reader, code);

		for (unsigned i = 0; desc && i < desc->field_count; i++)
			for (unsigned r = 0; r < REFERENCES; r++)
				if (!strcmp(desc->fields[i].name, references[r].field))
					dump->event_references[code][i] = &references[r];
	}
}

int dump_trace(struct trace_reader *reader, const struct dump_options *options)
{
	struct dump dump = {
		.options = options,
		.reader = reader,
		.out = options->out,
		.start = trace_get_header(reader)->open.units,
		.unit_ns = trace_unit_ns(reader),
	};

	find_references(&dump);
	int result = trace_each_record(reader, visit_record, &dump);
	if (dump.name_count)
		qsort(dump.names, dump.name_count, sizeof(*dump.names), compare_names);
	if (!result)
		result = dump_events(&dump);
	for (uint32_t i = 0; i < dump.name_count; i++)
		free(dump.names[i].text);
	for (uint32_t i = 0; i < dump.thread_count; i++)
		free(dump.threads[i].stack);
	free(dump.names);
	free(dump.threads);
	return result;
}
