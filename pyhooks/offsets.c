/*
 * offsets.c: finds CPython's functions, and the offsets in its structures.
 *
 * Offsets come from a table for the versions up to 3.12, and from what `_PyRuntime` publishes from
 * 3.13 on. Both are checked against the running interpreter where it can tell; what does not agree
 * leaves the layer off. The place of co_extra is found by setting one.
 */
#include "pyhooks/python.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct python python;

/*
 * Of x86-64 and aarch64 alike, read with offsetof from the headers of each version. Instruction: of
 * PyFrameObject.f_lasti, then _PyInterpreterFrame.prev_instr.
 */
static const struct layout {
	uint32_t version;
	uint32_t thread_cframe, thread_frame, thread_recursion, frame_code, frame_instruction;
	enum python_instruction instruction;
} layouts[] = {
	/* clang-format off */
	{ 0x0309,  0, 24,  0, 32, 104, PYTHON_BYTES },
	{ 0x030a,  0, 24,  0, 32,  96, PYTHON_UNITS },
	{ 0x030b, 56,  8,  0, 32,  56, PYTHON_POINTER },
	{ 0x030c, 56,  0, 36,  0,  56, PYTHON_POINTER },
	/* clang-format on */
};

#define THREAD_INTERPRETER 16u /* PyThreadState.interp, behind prev and next */
#define TYPE_BASIC_SIZE    32u /* PyTypeObject.tp_basicsize */
#define RECURSION_3_13     52u /* PyThreadState.c_recursion_remaining; not published */
#define PUBLISHED_FIRST    0x030du
#define PUBLISHED_LAST     0x030fu
#define PUBLISHED_WORDS    64u /* of _Py_DebugOffsets, those that are looked at */

/* The start of _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h). */
struct published {
	char cookie[8];
	uint64_t version;
	uint64_t free_threaded;
	uint64_t words[PUBLISHED_WORDS];
};

/* "3.11.7 (main, ..." is 0x030b07. */
static uint32_t version_number(const char *text)
{
	uint32_t version = 0;

	for (unsigned part = 0; part < 3; part++) {
		char *end;

		version = version << 8 | (strtoul(text, &end, 10) & 0xff);
		text = end + (*end == '.');
	}
	return version;
}

/*
 * The published offsets come in groups, one a struct, each the size and then the fields. The groups
 * have grown from version to version, so they are found by what their first fields must hold: prev 0,
 * next 8, interp 16, current_frame in a thread state; previous 8, executable 0, instr_ptr in a frame.
 */
static const char *layout_published(uint32_t version)
{
	const struct published *published = dlsym(RTLD_DEFAULT, "_PyRuntime");
	unsigned i = 0;

	if (!published || memcmp(published->cookie, "xdebugpy", sizeof(published->cookie)) != 0 ||
	    published->version >> 16 != version)
		return "this interpreter does not publish its offsets as expected";
	if (published->free_threaded)
		return "free-threaded builds of CPython are not supported";
	const uint64_t *words = published->words;
	while (i + 4 < PUBLISHED_WORDS &&
	       (words[i] != 0 || words[i + 1] != 8 || words[i + 2] != THREAD_INTERPRETER))
		i++;
	if (i + 4 >= PUBLISHED_WORDS || words[i + 3] % 8 || words[i + 3] > 1024)
		return "its published thread state is unknown";
	python.thread_frame = (uint32_t)words[i + 3];
	for (i += 4; i + 3 < PUBLISHED_WORDS && (words[i] != 8 || words[i + 1] != 0);)
		i++;
	if (i + 3 >= PUBLISHED_WORDS || words[i + 2] % 8 || words[i + 2] > 256)
		return "its published frame is unknown";
	python.frame_code = (uint32_t)words[i + 1];
	python.frame_instruction = (uint32_t)words[i + 2];
	python.instruction = PYTHON_POINTER;
	python.thread_recursion = version == 0x030d ? RECURSION_3_13 : 0;
	return NULL;
}

static const char *layout_find(uint32_t version)
{
	python.thread_interpreter = THREAD_INTERPRETER;
	if (version >= PUBLISHED_FIRST && version <= PUBLISHED_LAST)
		return layout_published(version);
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		const struct layout *layout = &layouts[i];

		if (layout->version != version)
			continue;
		python.thread_cframe = layout->thread_cframe;
		python.thread_frame = layout->thread_frame;
		python.thread_recursion = layout->thread_recursion;
		python.frame_code = layout->frame_code;
		python.frame_instruction = layout->frame_instruction;
		python.instruction = layout->instruction;
		return NULL;
	}
	return "this version of CPython is not known";
}

/*
 * Finds co_extra: the one word of a new code object that setting an extra changes. Ends with the
 * index that is ours; no function frees a value, which is a number.
 */
static const char *extra_find(void)
{
	uintptr_t before[64];
	const uint64_t value = 0x7461726500000001u;
	uint32_t bytes = (uint32_t)python_field(python.code_type, TYPE_BASIC_SIZE);
	const char *problem = "co_extra was not found";

	if (bytes > sizeof(before) || bytes % sizeof(*before) != 0)
		return "its code objects have an unexpected size";
	python.code_start = bytes;
	python.extra_index = python.request_extra(NULL);
	void *code = python.extra_index >= 0 ? python.code_new_empty("tare", "tare", 1) : NULL;
	if (!code)
		return "it gives no index for co_extra";
	if (python_is_code(code)) {
		memcpy(before, code, bytes);
		if (python.set_extra(code, python.extra_index, (void *)value) == 0) {
			/* From the word behind the reference count and the type. */
			for (uint32_t at = 16; at < bytes; at += sizeof(*before)) {
				if (before[at / 8] == 0 && python_field(code, at) != 0) {
					python.code_extra = at;
					break;
				}
			}
		}
		if (python.code_extra && python_code_extra(code) == value)
			problem = NULL;
	}
	python.release(code);
	return problem;
}

/* Reads the frame that runs now as we would, and as the interpreter does. */
static const char *frame_check(void)
{
	const void *frame = python_current_frame(python.unchecked_thread());
	void *object = python.frame_object();
	const char *problem = NULL;

	/* Without a frame of Python, 3.15 has one of the interpreter's own there. */
	if (!object)
		return frame && python_is_code(python_frame_code(frame)) ?
			       "its current frame is not where it should be" :
			       NULL;
	void *code = python.frame_object_code(object);
	void *last = python.get_attribute(object, "f_lasti");
	if (!frame || python_frame_code(frame) != code)
		problem = "its current frame is not where it should be";
	else if (!last ||
		 python.integer(last) != python_frame_offset(frame) * (int)PYTHON_UNIT_BYTES)
		problem = "its current instruction is not where it should be";
	if (last)
		python.release(last);
	python.release(code);
	return problem;
}

static void *function_find(const char *name, const char *other)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found || !other ? found : dlsym(RTLD_DEFAULT, other);
}

const char *python_find(void)
{
	void *type, *value, *traceback;
	const char *problem;

#define FUNCTION_(result, field, arguments, name, other)                                           \
	if (!(*(void **)&python.field = function_find(name, other)))                               \
		return "this interpreter has no " name;
	PYTHON_FUNCTIONS(FUNCTION_)
#undef FUNCTION_
	python.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
	python.full_version = version_number(python.version_text());
	python.version = python.full_version >> 8;
	python.interpreter = python.main_interpreter();
	if (!python.code_type || !python.interpreter)
		return "this interpreter has no PyCode_Type or no main interpreter";
	if ((problem = layout_find(python.version)))
		return problem;
	const void *thread = python.unchecked_thread();
	if (!thread || python_field(thread, THREAD_INTERPRETER) != (uintptr_t)python.interpreter)
		return "its thread states have an unexpected layout";
	python.error_fetch(&type, &value, &traceback);
	if (!(problem = extra_find()))
		problem = frame_check();
	python.error_restore(type, value, traceback);
	return problem;
}
