/*
 * python.h: CPython as seen without its headers: functions by name, fields by offset.
 *
 * For pyhooks/ alone. Filled once by python_find(), before anything else here is used. Objects,
 * frames and thread states are plain addresses. What is read here is only ever of the calling
 * thread's own thread state, so that it needs no GIL; functions need the GIL unless they say not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *python_eval(void *thread, void *frame, int throwflag);

/*
 * FUNCTION(result, field, arguments, name, name in other versions or NULL)
 * Two of them may be called without the GIL: gilstate_thread, is_finalizing, unchecked_thread.
 */
/* clang-format off */
#define PYTHON_FUNCTIONS(FUNCTION) \
	FUNCTION(void *, eval_default, (void *thread, void *frame, int throwflag), "_PyEval_EvalFrameDefault", NULL) \
	FUNCTION(const char *, version_text, (void), "Py_GetVersion", NULL) \
	FUNCTION(void *, main_interpreter, (void), "PyInterpreterState_Main", NULL) \
	FUNCTION(python_eval *, get_eval, (void *interpreter), "_PyInterpreterState_GetEvalFrameFunc", NULL) \
	FUNCTION(void, set_eval, (void *interpreter, python_eval *), "_PyInterpreterState_SetEvalFrameFunc", NULL) \
	FUNCTION(void *, gilstate_thread, (void), "PyGILState_GetThisThreadState", NULL) \
	FUNCTION(void *, unchecked_thread, (void), "_PyThreadState_UncheckedGet", "PyThreadState_GetUnchecked") \
	FUNCTION(int, is_finalizing, (void), "_Py_IsFinalizing", "Py_IsFinalizing") \
	FUNCTION(void *, frame_object, (void), "PyEval_GetFrame", NULL) \
	FUNCTION(void *, frame_object_code, (void *frame), "PyFrame_GetCode", NULL) \
	FUNCTION(void *, code_new_empty, (const char *file, const char *name, int line), "PyCode_NewEmpty", NULL) \
	FUNCTION(ptrdiff_t, request_extra, (void (*free)(void *)), "_PyEval_RequestCodeExtraIndex", "PyUnstable_Eval_RequestCodeExtraIndex") \
	FUNCTION(int, set_extra, (void *code, ptrdiff_t index, void *value), "_PyCode_SetExtra", "PyUnstable_Code_SetExtra") \
	FUNCTION(void *, get_attribute, (void *object, const char *name), "PyObject_GetAttrString", NULL) \
	FUNCTION(const char *, utf8, (void *text, ptrdiff_t *length), "PyUnicode_AsUTF8AndSize", NULL) \
	FUNCTION(void *, encode, (void *text, const char *encoding, const char *errors), "PyUnicode_AsEncodedString", NULL) \
	FUNCTION(int, bytes, (void *object, char **data, ptrdiff_t *length), "PyBytes_AsStringAndSize", NULL) \
	FUNCTION(long, integer, (void *object), "PyLong_AsLong", NULL) \
	FUNCTION(void, error_fetch, (void **type, void **value, void **traceback), "PyErr_Fetch", NULL) \
	FUNCTION(void, error_restore, (void *type, void *value, void *traceback), "PyErr_Restore", NULL) \
	FUNCTION(void, release, (void *object), "Py_DecRef", NULL) \
	FUNCTION(void *, reallocate, (void *memory, size_t bytes), "PyMem_Realloc", NULL)
/* clang-format on */

/* How a frame tells its instruction. */
enum python_instruction {
	PYTHON_BYTES,   /* int, in bytes from the start of the code; -1 before the first */
	PYTHON_UNITS,   /* int, in code units */
	PYTHON_POINTER, /* address of a code unit; that before the first one, before the first */
};

#define PYTHON_UNIT_BYTES 2u /* _Py_CODEUNIT */

/* What a frame wants comes first, in one cache line, eval_default included. */
struct python {
	/* Offsets in bytes; 0: there is no such field. */
	uint32_t thread_interpreter;
	uint32_t thread_cframe; /* thread state → struct that holds `thread_frame`; else it is its own */
	uint32_t thread_frame; /* → the innermost frame that runs */
	uint32_t thread_recursion; /* int, what is left of C recursion: the evaluator takes RECURSION_UNITS */
	uint32_t frame_code;
	uint32_t frame_instruction;
	uint32_t code_start; /* code object → its first code unit (PYTHON_POINTER) */
	uint32_t code_extra; /* code object → struct python_extras */
	enum python_instruction instruction;

	ptrdiff_t extra_index; /* ours */

#define FUNCTION_(result, field, arguments, name, other) result(*field) arguments;
	PYTHON_FUNCTIONS(FUNCTION_)
#undef FUNCTION_

	void *interpreter; /* the main one, the only one that is looked at */
	void *code_type;
	uint32_t version;      /* 0x030b: 3.11 */
	uint32_t full_version; /* 0x030b07: 3.11.7 */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct python, eval_default) < 64, "one cache line");

extern struct python python;

/* Finds functions and offsets. GIL held. Returns NULL, or why sites and frames cannot be read. */
const char *python_find(void);

/* co_extra: what others hang on a code object. */
struct python_extras {
	ptrdiff_t count;
	uint64_t values[];
};

static inline uintptr_t python_field(const void *object, uint32_t offset)
{
	return *(const uintptr_t *)((const char *)object + offset);
}

/* The innermost frame that runs on `thread`; NULL: none. When a frame hook is entered: its caller's. */
static inline void *python_current_frame(const void *thread)
{
	if (python.thread_cframe)
		thread = (const void *)python_field(thread, python.thread_cframe);
	return (void *)python_field(thread, python.thread_frame);
}

/* The low bits are a tag from 3.14 on. */
static inline void *python_frame_code(const void *frame)
{
	return (void *)(python_field(frame, python.frame_code) & ~(uintptr_t)7);
}

static inline bool python_is_code(const void *object)
{
	return object && python_field(object, sizeof(intptr_t)) == (uintptr_t)python.code_type;
}

/* Offset of the instruction that `frame` executes, in code units; -1: none yet. */
static inline int64_t python_frame_offset(const void *frame)
{
	const char *field = (const char *)frame + python.frame_instruction;

	if (python.instruction == PYTHON_POINTER) {
		uintptr_t start = (uintptr_t)python_frame_code(frame) + python.code_start;

		return (intptr_t)(*(const uintptr_t *)field - start) / (intptr_t)PYTHON_UNIT_BYTES;
	}
	int64_t offset = *(const int *)field;
	return python.instruction == PYTHON_UNITS || offset < 0 ? offset :
								  offset / (int)PYTHON_UNIT_BYTES;
}

static inline uint64_t python_code_extra(const void *code)
{
	const struct python_extras *extras = (const void *)python_field(code, python.code_extra);

	return extras && extras->count > python.extra_index ? extras->values[python.extra_index] :
							      0;
}
