/*
 * library_types.h: the types of CUDA's libraries, as far as library_hooks.def needs them.
 *
 * For library_calls.c alone, which is built without NVIDIA's headers. Only how an argument is passed
 * counts: tests/test_library_table.py compares the sizes with those headers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Enumerations, and handles that are numbers. */
typedef int cublasComputeType_t;
typedef int cublasDiagType_t;
typedef int cublasFillMode_t;
typedef int cublasGemmAlgo_t;
typedef int cublasOperation_t;
typedef int cublasSideMode_t;
typedef int cudaDataType;
typedef int cudnnBatchNormMode_t;
typedef int cudnnBatchNormOps_t;
typedef int cudnnCTCLossAlgo_t;
typedef int cudnnConvolutionBwdDataAlgo_t;
typedef int cudnnConvolutionBwdFilterAlgo_t;
typedef int cudnnConvolutionFwdAlgo_t;
typedef int cudnnForwardMode_t;
typedef int cudnnWgradMode_t;
typedef int cufftType;
typedef int cusolverEigMode_t;
typedef int cusparseDirection_t;
typedef int cusparseIndexBase_t;
typedef int cusparseOperation_t;
typedef int cusparseSDDMMAlg_t;
typedef int cusparseSpGEMMAlg_t;
typedef int cusparseSpMMAlg_t;
typedef int cusparseSpMVAlg_t;
typedef int cusparseSpSMAlg_t;
typedef int cusparseSpSVAlg_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef int cufftHandle;

/* Handles. */
typedef void *cublasHandle_t;
typedef void *cublasLtHandle_t;
typedef void *cublasLtMatmulDesc_t;
typedef void *cublasLtMatmulPreference_t;
typedef void *cublasLtMatrixLayout_t;
typedef void *cudaStream_t;
typedef void *cudnnActivationDescriptor_t;
typedef void *cudnnBackendDescriptor_t;
typedef void *cudnnCTCLossDescriptor_t;
typedef void *cudnnConvolutionDescriptor_t;
typedef void *cudnnDropoutDescriptor_t;
typedef void *cudnnFilterDescriptor_t;
typedef void *cudnnHandle_t;
typedef void *cudnnPoolingDescriptor_t;
typedef void *cudnnRNNDataDescriptor_t;
typedef void *cudnnRNNDescriptor_t;
typedef void *cudnnSpatialTransformerDescriptor_t;
typedef void *cudnnTensorDescriptor_t;
typedef void *cusolverDnHandle_t;
typedef void *cusolverDnParams_t;
typedef void *cusparseConstDnMatDescr_t;
typedef void *cusparseConstDnVecDescr_t;
typedef void *cusparseConstSpMatDescr_t;
typedef void *cusparseDnMatDescr_t;
typedef void *cusparseDnVecDescr_t;
typedef void *cusparseHandle_t;
typedef void *cusparseMatDescr_t;
typedef void *cusparseSpGEMMDescr_t;
typedef void *cusparseSpMatDescr_t;
typedef void *cusparseSpSMDescr_t;
typedef void *cusparseSpSVDescr_t;
typedef void *gesvdjInfo_t;
typedef void *syevjInfo_t;
typedef void *ncclComm_t;

/* Seen through pointers only. */
typedef struct cuComplex cuComplex;
typedef struct cuDoubleComplex cuDoubleComplex;
typedef struct cublasLtMatmulAlgo_t cublasLtMatmulAlgo_t;
typedef struct cublasLtMatmulHeuristicResult_t cublasLtMatmulHeuristicResult_t;
typedef struct cudnnConvolutionBwdDataAlgoPerf_t cudnnConvolutionBwdDataAlgoPerf_t;
typedef struct cudnnConvolutionBwdFilterAlgoPerf_t cudnnConvolutionBwdFilterAlgoPerf_t;
typedef struct cudnnConvolutionFwdAlgoPerf_t cudnnConvolutionFwdAlgoPerf_t;
typedef struct ncclConfig_t ncclConfig_t;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

/* Passed by value. */
typedef struct {
	char internal[128];
} ncclUniqueId;
