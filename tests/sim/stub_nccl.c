/*
 * NCCL bodies: every rank is alone, a collective takes device time and moves nothing.
 */
#include <string.h>
#include "stub.h"

BODY(int, ncclGetVersion)(int *version)
{
	*version = 23007;
	return COUNT(ncclGetVersion);
}

BODY(int, ncclGetUniqueId)(void *id)
{
	memset(id, 1, 128);
	return COUNT(ncclGetUniqueId);
}

BODY(const char *, ncclGetErrorString)(int error)
{
	COUNT(ncclGetErrorString);
	return error ? "NCCL error" : "no error";
}

BODY(const char *, ncclGetLastError)(void *comm)
{
	(void)comm;
	COUNT(ncclGetLastError);
	return "";
}

BODY(int, ncclCommInitRank)(void **comm)
{
	*comm = stub_handle_new();
	return COUNT(ncclCommInitRank);
}

BODY(int, ncclCommInitRankConfig)(void **comm)
{
	*comm = stub_handle_new();
	return COUNT(ncclCommInitRankConfig);
}

BODY(int, ncclCommGetAsyncError)(void *comm, int *error)
{
	(void)comm;
	*error = 0;
	return COUNT(ncclCommGetAsyncError);
}

BODY(int, ncclAllReduce)
(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream)
{
	(void)in, (void)out, (void)count, (void)type, (void)op, (void)comm;
	int rc = COUNT(ncclAllReduce);

	return rc ? rc : stub_work(FN_ncclAllReduce, stream);
}

BODY(int, ncclReduceScatter)
(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream)
{
	(void)in, (void)out, (void)count, (void)type, (void)op, (void)comm;
	int rc = COUNT(ncclReduceScatter);

	return rc ? rc : stub_work(FN_ncclReduceScatter, stream);
}

BODY(int, ncclBroadcast)
(const void *in, void *out, size_t count, int type, int root, void *comm, void *stream)
{
	(void)in, (void)out, (void)count, (void)type, (void)root, (void)comm;
	int rc = COUNT(ncclBroadcast);

	return rc ? rc : stub_work(FN_ncclBroadcast, stream);
}

BODY(int, ncclAllGather)
(const void *in, void *out, size_t count, int type, void *comm, void *stream)
{
	(void)in, (void)out, (void)count, (void)type, (void)comm;
	int rc = COUNT(ncclAllGather);

	return rc ? rc : stub_work(FN_ncclAllGather, stream);
}
