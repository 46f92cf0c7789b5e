/*
 * NCCL bodies: every rank is alone, so a collective takes device time and gives its input back.
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

/* The result of one rank alone is its input. */
static int collective(unsigned function, const void *in, void *out, size_t count, int type,
		      void *stream)
{
	/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16 */
	static const size_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
	size_t types = sizeof(sizes) / sizeof(sizes[0]);
	struct sim_copy copy = {
		.dst = out,
		.src = in,
		.width = count * ((size_t)type < types ? sizes[type] : 1),
		.height = 1,
		.depth = 1,
		.column = SIM_D2D,
	};
	struct sim_touched nothing = { 0 };
	struct sim_stream *s = sim_stream(stream, SIM_LEGACY);
	int rc = stub_work(function, stream, &nothing);

	return rc || in == out || !s ? rc : sim_copy(s, &copy, true);
}

BODY(int, ncclAllReduce)
(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream)
{
	TIMED;
	(void)op, (void)comm;
	int rc = COUNT(ncclAllReduce);

	return rc ? rc : collective(FN_ncclAllReduce, in, out, count, type, stream);
}

BODY(int, ncclReduceScatter)
(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream)
{
	TIMED;
	(void)op, (void)comm;
	int rc = COUNT(ncclReduceScatter);

	return rc ? rc : collective(FN_ncclReduceScatter, in, out, count, type, stream);
}

BODY(int, ncclBroadcast)
(const void *in, void *out, size_t count, int type, int root, void *comm, void *stream)
{
	TIMED;
	(void)root, (void)comm;
	int rc = COUNT(ncclBroadcast);

	return rc ? rc : collective(FN_ncclBroadcast, in, out, count, type, stream);
}

BODY(int, ncclReduce)
(const void *in, void *out, size_t count, int type, int op, int root, void *comm, void *stream)
{
	TIMED;
	(void)op, (void)root, (void)comm;
	int rc = COUNT(ncclReduce);

	return rc ? rc : collective(FN_ncclReduce, in, out, count, type, stream);
}

BODY(int, ncclAllGather)
(const void *in, void *out, size_t count, int type, void *comm, void *stream)
{
	TIMED;
	(void)comm;
	int rc = COUNT(ncclAllGather);

	return rc ? rc : collective(FN_ncclAllGather, in, out, count, type, stream);
}
