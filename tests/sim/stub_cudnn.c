/*
 * cuDNN bodies that the general rules cannot give. Of the graph API (the cudnnBackend functions) a
 * descriptor is a handle without contents, and each search for engines finds one that needs no
 * workspace.
 */
#include <stdio.h>
#include <string.h>
#include "stub.h"

/* cudnnBackendAttributeType_t, as far as it tells how large a value is. */
enum {
	TYPE_BOOLEAN = 2,
	TYPE_INT64 = 3,
	TYPE_DOUBLE = 5,
	TYPE_VOID_PTR = 6,
	TYPE_NUMERICAL_NOTE = 11,
	TYPE_BACKEND_DESCRIPTOR = 15,
	TYPE_BEHAVIOR_NOTE = 19,
	TYPE_CHAR = 24,
};

/* cuDNN counts in thousands up to 8, and in ten thousands from 9 on. */
#define MAJOR (SIM_SONAME[sizeof("libcudnn.so.") - 1] - '0')
#define MINOR 24

BODY(size_t, cudnnGetVersion)(void)
{
	COUNT(cudnnGetVersion);
	return MAJOR * (MAJOR < 9 ? 1000 : 10000) + MINOR * 100;
}

BODY(int, cudnnGetProperty)(int property, int *value)
{
	*value = property == 0 ? MAJOR : property == 1 ? MINOR : 0;
	return COUNT(cudnnGetProperty);
}

BODY(size_t, cudnnGetCudartVersion)(void)
{
	COUNT(cudnnGetCudartVersion);
	return 13000;
}

BODY(const char *, cudnnGetErrorString)(int error)
{
	COUNT(cudnnGetErrorString);
	return error ? "cuDNN error" : "CUDNN_STATUS_SUCCESS";
}

BODY(void, cudnnGetLastErrorString)(char *message, size_t size)
{
	COUNT(cudnnGetLastErrorString);
	snprintf(message, size, "none");
}

BODY(int, cudnnBackendCreateDescriptor)(int type, void **descriptor)
{
	(void)type;
	*descriptor = stub_handle_new();
	return COUNT(cudnnBackendCreateDescriptor);
}

static size_t size_of(int type)
{
	switch (type) {
	case TYPE_INT64:
	case TYPE_DOUBLE:
	case TYPE_VOID_PTR: return 8;
	case TYPE_BOOLEAN:
	case TYPE_CHAR: return 1;
	default: return 4;
	}
}

BODY(int, cudnnBackendGetAttribute)
(void *descriptor, int name, int type, int64_t wanted, int64_t *found, void *values)
{
	(void)descriptor, (void)name;
	bool notes = type == TYPE_NUMERICAL_NOTE || type == TYPE_BEHAVIOR_NOTE;

	if (found)
		*found = notes ? 0 : 1;
	if (values && wanted > 0 && !notes && type != TYPE_BACKEND_DESCRIPTOR)
		memset(values, 0, size_of(type));
	return COUNT(cudnnBackendGetAttribute);
}
