/*
 * code.c: ids, names, line tables and bytecode of code objects.
 *
 * See code.h. Names and tables are asked from the code object itself: its attributes are answered in
 * C, whatever the version's layout. co_code is the bytecode as compiled; the interpreter keeps the
 * bytes object that it makes for it, as when a program asks.
 */
#include "pyhooks/code.h"

#include <errno.h>

/* A value of a code object, and what has to be released once it was written. */
struct held {
	struct trace_str text;
	void *objects[2];
};

static struct held held_text(void *code, const char *attribute)
{
	struct held held = { .objects = { python.get_attribute(code, attribute) } };
	ptrdiff_t length = 0;

	if (!held.objects[0])
		return held;
	held.text.data = python.utf8(held.objects[0], &length);
	if (!held.text.data) {
		/* Surrogates: names that were not valid in their encoding. */
		char *data = NULL;

		held.objects[1] = python.encode(held.objects[0], "utf-8", "backslashreplace");
		if (held.objects[1] && python.bytes(held.objects[1], &data, &length) == 0)
			held.text.data = data;
	}
	held.text.length = held.text.data ? (uint32_t)length : 0;
	return held;
}

static struct held held_bytes(void *code, const char *attribute)
{
	struct held held = { .objects = { python.get_attribute(code, attribute) } };
	ptrdiff_t length;
	char *data;

	if (held.objects[0] && python.bytes(held.objects[0], &data, &length) == 0)
		held.text = (struct trace_str){ data, (uint32_t)length };
	return held;
}

static void held_release(struct held *held)
{
	for (unsigned i = 0; i < 2; i++) {
		if (held->objects[i])
			python.release(held->objects[i]);
	}
}

static uint32_t number(void *code, const char *attribute)
{
	void *object = python.get_attribute(code, attribute);
	long value = object ? python.integer(object) : 0;

	if (object)
		python.release(object);
	return value > 0 ? (uint32_t)value : 0;
}

static void define(struct trace_buffer *buffer, uint32_t id, void *code)
{
	struct held file = held_text(code, "co_filename");
	struct held name = held_text(code, python.version >= 0x030b ? "co_qualname" : "co_name");
	struct held lines =
		held_bytes(code, python.version >= 0x030a ? "co_linetable" : "co_lnotab");
	struct held bytecode = held_bytes(code, "co_code");

	trace_define(buffer, TRACE_RECORD_CODE,
		     &(struct record_CODE){
			     .code = id,
			     .flags = number(code, "co_flags"),
			     .first_line = number(code, "co_firstlineno"),
			     .file = file.text,
			     .name = name.text,
		     });
	trace_define(buffer, TRACE_RECORD_LINES,
		     &(struct record_LINES){
			     .code = id,
			     .python = (uint16_t)python.version,
			     .lines = lines.text,
			     .bytecode = bytecode.text,
		     });
	held_release(&file);
	held_release(&name);
	held_release(&lines);
	held_release(&bytecode);
}

/*
 * As PyCode_SetExtra, which would make room for every index there is: when the code object goes, the
 * free functions of others would then be called, with NULL, for code that they never saw, even late,
 * when they are gone themselves.
 */
static bool set_extra(void *code, uint64_t value)
{
	struct python_extras *extras = (void *)python_field(code, python.code_extra);
	ptrdiff_t count = extras ? extras->count : 0;

	if (count <= python.extra_index) {
		extras = python.reallocate(extras,
					   sizeof(*extras) + (size_t)(python.extra_index + 1) *
								     sizeof(*extras->values));
		if (!extras)
			return false;
		while (count <= python.extra_index)
			extras->values[count++] = 0;
		extras->count = count;
		*(struct python_extras **)((char *)code + python.code_extra) = extras;
	}
	extras->values[python.extra_index] = value;
	return true;
}

uint32_t code_define(struct tare_thread *thread, void *code)
{
	static uint32_t counter;
	struct trace_buffer *buffer = thread->buffer;
	void *type, *value, *traceback;
	int saved_errno = errno;

	if (!python_is_code(code))
		return 0;
	uint32_t depth = buffer->depth;
	trace_enter(buffer, tare_now(), TARE, 2);
	python.error_fetch(&type, &value, &traceback);
	/* In a forked child it has an id, from the parent. */
	uint32_t id = (uint32_t)python_code_extra(code);
	if (!id)
		id = tare_next_id(&counter);
	uint64_t extra = (uint64_t)tare_generation << 32 | id;
	if (set_extra(code, extra))
		define(buffer, id, code);
	else
		id = 0;
	python.error_restore(type, value, traceback);
	trace_leave(buffer, tare_now(), depth, 0);
	errno = saved_errno;
	return id;
}
