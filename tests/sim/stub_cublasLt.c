/*
 * cuBLASLt bodies that the general rules cannot give.
 */
#include <string.h>
#include "stub.h"

/* cublasLtMatmulHeuristicResult_t: the algorithm comes first, then what is said of it. */
struct heuristic {
	unsigned long long algorithm[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

BODY(size_t, cublasLtGetVersion)(void)
{
	COUNT(cublasLtGetVersion);
	return 130100;
}

BODY(int, cublasLtMatmulAlgoGetHeuristic)
(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int wanted,
 struct heuristic *results, int *found)
{
	TIMED;
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
	COUNT(cublasLtMatmulAlgoGetHeuristic);
	*found = wanted > 0;
	if (*found)
		memset(results, 0, sizeof(*results));
	return 0;
}

BODY(int, cublasLtMatmul)
(void *handle, void *operation, void *alpha, void *a, void *a_layout, void *b, void *b_layout,
 void *beta, void *c, void *c_layout, void *d, void *d_layout, void *algorithm, void *workspace,
 size_t workspace_bytes, void *stream)
{
	TIMED;
	(void)handle, (void)operation, (void)alpha, (void)a, (void)a_layout, (void)b;
	(void)b_layout, (void)beta, (void)c, (void)c_layout, (void)d_layout;
	(void)algorithm, (void)workspace, (void)workspace_bytes;
	struct sim_touched touched = { 0 };
	int rc = COUNT(cublasLtMatmul);

	sim_touch(&touched, (uintptr_t)d);
	return rc ? rc : stub_work(FN_cublasLtMatmul, stream, &touched);
}
