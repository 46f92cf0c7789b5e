/*
 * An interpreter that tare does not know, in so far as it is seen through its symbols: VERSION is what
 * it says it is, FREE_THREADED and COOKIE what it publishes. Nothing else of it may be called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef COOKIE
#define COOKIE "xdebugpy"
#endif
#ifndef FREE_THREADED
#define FREE_THREADED 0
#endif

int cudaDeviceSynchronize(void);

struct {
	char cookie[8];
	unsigned long version, free_threaded, words[100];
} _PyRuntime = { COOKIE, 0x030e0000, FREE_THREADED, { 0 } };
char PyCode_Type[400];

int Py_IsInitialized(void)
{
	return 1;
}

int PyGILState_Check(void)
{
	return 1;
}

int Py_AddPendingCall(int (*function)(void *), void *argument)
{
	return function(argument);
}

const char *Py_GetVersion(void)
{
	return VERSION " (main, Jan  1 2030) [GCC]";
}

void *PyInterpreterState_Main(void)
{
	return PyCode_Type;
}

#define NEVER(name)                                                                                \
	void name(void)                                                                            \
	{                                                                                          \
		puts(#name " was called");                                                         \
		abort();                                                                           \
	}
NEVER(_PyInterpreterState_GetEvalFrameFunc)
NEVER(_PyInterpreterState_SetEvalFrameFunc)
NEVER(_PyEval_EvalFrameDefault)
NEVER(PyGILState_GetThisThreadState)
NEVER(PyThreadState_GetUnchecked)
NEVER(Py_IsFinalizing)
NEVER(PyEval_GetFrame)
NEVER(PyFrame_GetCode)
NEVER(PyCode_NewEmpty)
NEVER(PyUnstable_Eval_RequestCodeExtraIndex)
NEVER(PyUnstable_Code_SetExtra)
NEVER(PyObject_GetAttrString)
NEVER(PyUnicode_AsUTF8AndSize)
NEVER(PyUnicode_AsEncodedString)
NEVER(PyBytes_AsStringAndSize)
NEVER(PyLong_AsLong)
NEVER(PyErr_Fetch)
#ifndef LACKS_RESTORE
NEVER(PyErr_Restore)
#endif
NEVER(Py_DecRef)
NEVER(PyMem_Realloc)

int main(void)
{
	struct stat status;

	printf("%d\n", stat("/", &status));
	printf("%d\n", cudaDeviceSynchronize());
	return 0;
}
