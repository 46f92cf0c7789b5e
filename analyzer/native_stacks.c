/* native_stacks.c: see native_stacks.h. */
#include "analyzer/native_stacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/display.h"
#include "analyzer/symbols.h"
#include "analyzer/table.h"
#include "traces/bytes.h"

#define TEXT_FRAMES 6
#define INDENT      6

struct frame {
	const struct def_module *module; /* NULL: not known */
	const struct symbol *symbol;     /* NULL: no module */
	uint64_t offset;                 /* in the module; else the address */
};

/* Text leaves out what only leads from one function to the next. */
static const char *const dull[] = { "std::", "c10::impl::", "c10::cuda::", "c10::Dispatcher::",
				    "at::_ops::" };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The next frame, or false at the end, also of one that is damaged. */
static bool next_frame(struct definitions *definitions, const uint8_t **at, const uint8_t *end,
		       struct frame *frame)
{
	uint64_t module, address;

	if (!(*at = get_varint(*at, end, &module)) || !(*at = get_varint(*at, end, &address)))
		return false;
	uint32_t index = id_map_get(&definitions->module_ids, module);
	*frame = (struct frame){ .offset = address };
	if (index) {
		struct def_module *found = &definitions->modules[index];

		if (!found->symbols)
			found->symbols =
				symbols_new(found->path, found->build_id, found->build_id_bytes);
		frame->module = found;
		/* A return address is that of the next instruction, which may be another line's. */
		frame->symbol = symbols_find(found->symbols, address - 1);
	}
	return true;
}

static bool is_ours(const struct frame *frame)
{
	return frame->module && !strcmp(base_name(frame->module->path), "libtare.so");
}

static bool is_interpreter(const struct frame *frame)
{
	const char *name = frame->module ? base_name(frame->module->path) : "";

	return !strncmp(name, "python", 6) || !strncmp(name, "libpython", 9);
}

static const struct def_stack *find_stack(const struct definitions *definitions, uint32_t id)
{
	uint32_t index = id_map_get(&definitions->stack_ids, id);

	return index ? &definitions->stacks[index] : NULL;
}

static json_t *frame_json(const struct frame *frame)
{
	const struct symbol *symbol = frame->symbol;
	json_t *json = json_object();

	json_object_set_new(json, "function",
			    symbol && symbol->function ? json_string(symbol->function) :
							 json_null());
	json_object_set_new(json, "module",
			    frame->module ? json_string(frame->module->path) : json_null());
	json_object_set_new(json, "offset", json_integer((json_int_t)frame->offset));
	json_object_set_new(json, "file",
			    symbol && symbol->file ? json_string(symbol->file) : json_null());
	json_object_set_new(json, "line",
			    symbol && symbol->line ? json_integer(symbol->line) : json_null());
	return json;
}

json_t *native_stack_json(struct definitions *definitions, uint32_t id)
{
	const struct def_stack *stack = find_stack(definitions, id);
	struct frame frame;

	if (!stack)
		return json_null();
	const uint8_t *at = stack->frames, *end = at + stack->bytes;
	json_t *json = json_array();
	while (next_frame(definitions, &at, end, &frame))
		if (!is_ours(&frame))
			json_array_append_new(json, frame_json(&frame));
	return json;
}

/* Where the parameters of a demangled name begin; its end where there are none. */
static size_t name_length(const char *name)
{
	size_t length = strlen(name), at;
	unsigned depth = 0;

	/* "f(int) const", "f(int) [clone .cold]" */
	for (at = length; at && name[at - 1] != ')'; at--)
		if (name[at - 1] == '>' || name[at - 1] == ':')
			return length;
	while (at) {
		depth += name[at - 1] == ')';
		depth -= name[at - 1] == '(';
		at--;
		if (!depth)
			break;
	}
	return at ? at : length;
}

static bool is_dull(const char *function)
{
	for (unsigned i = 0; i < sizeof(dull) / sizeof(*dull); i++)
		if (!strncmp(function, dull[i], strlen(dull[i])))
			return true;
	return false;
}

/* "function  file:line" or "function  module", "module+0x1234" where the function is not known. */
static char *frame_text(const struct frame *frame)
{
	const struct symbol *symbol = frame->symbol;
	const char *module = frame->module ? base_name(frame->module->path) : "?";
	char *text;
	int done;

	if (!symbol || !symbol->function)
		done = asprintf(&text, "%s+0x%" PRIx64, module, frame->offset);
	else if (symbol->file)
		done = asprintf(&text, "%.*s  %s:%u", (int)name_length(symbol->function),
				symbol->function, base_name(symbol->file), symbol->line);
	else
		done = asprintf(&text, "%.*s  %s", (int)name_length(symbol->function),
				symbol->function, module);
	return done < 0 ? NULL : text;
}

void native_stack_print(struct definitions *definitions, uint32_t id, FILE *out)
{
	const struct def_stack *stack = find_stack(definitions, id);
	unsigned width = output_width(), count = 0;
	struct frame frame;

	if (!stack)
		return;
	const uint8_t *at = stack->frames, *end = at + stack->bytes;
	while (count < TEXT_FRAMES && next_frame(definitions, &at, end, &frame)) {
		if (is_ours(&frame) ||
		    (frame.symbol && frame.symbol->function && is_dull(frame.symbol->function)))
			continue;
		/* It is shown where it is all there is. */
		bool last = is_interpreter(&frame);

		if (last && count)
			break;
		char *text = frame_text(&frame);
		char *safe = text_escape(text ? text : "?");
		char *line =
			text_shorten(safe, width > INDENT + 20 ? width - INDENT : 20, TEXT_CUT_END);

		fprintf(out, "%*s%s\n", INDENT, "", line);
		free(line);
		free(safe);
		free(text);
		count++;
		if (last)
			break;
	}
}
