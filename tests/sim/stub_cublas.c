/*
 * cuBLAS bodies that the general rules cannot give.
 */
#include "stub.h"

BODY(int, cublasGetVersion_v2)(void *handle, int *version)
{
	(void)handle;
	COUNT(cublasGetVersion_v2);
	*version = 130100;
	return 0;
}

BODY(const char *, cublasGetStatusString)(int status)
{
	COUNT(cublasGetStatusString);
	return status ? "cuBLAS error" : "CUBLAS_STATUS_SUCCESS";
}

BODY(const char *, cublasGetStatusName)(int status)
{
	COUNT(cublasGetStatusName);
	return status ? "cuBLAS error" : "CUBLAS_STATUS_SUCCESS";
}
