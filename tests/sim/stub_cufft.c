/*
 * cuFFT bodies: a plan is a small number.
 */
#include <stdatomic.h>
#include "stub.h"

enum { PLANS = 4096 };

static void *streams[PLANS];

BODY(int, cufftCreate)(int *plan)
{
	static atomic_int plans;

	*plan = plans++ % PLANS;
	return COUNT(cufftCreate);
}

BODY(int, cufftSetStream)(int plan, void *stream)
{
	streams[plan % PLANS] = stream;
	return COUNT(cufftSetStream);
}

BODY(int, cufftXtMakePlanMany)
(int plan, int rank, long long *n, long long *in_embed, long long in_stride, long long in_distance,
 int in_type, long long *out_embed, long long out_stride, long long out_distance, int out_type,
 long long batch, size_t *work_size, int type)
{
	TIMED;
	(void)plan, (void)rank, (void)n, (void)in_embed, (void)in_stride, (void)in_distance;
	(void)in_type, (void)out_embed, (void)out_stride, (void)out_distance, (void)out_type;
	(void)batch, (void)type;
	*work_size = 0;
	return COUNT(cufftXtMakePlanMany);
}

BODY(int, cufftXtExec)(int plan, void *in, void *out, int direction)
{
	TIMED;
	(void)in, (void)direction;
	struct sim_touched touched = { 0 };
	int rc = COUNT(cufftXtExec);

	sim_touch(&touched, (uintptr_t)out);
	return rc ? rc : stub_work(FN_cufftXtExec, streams[plan % PLANS], &touched);
}
