#pragma once

#include <cublas_v2.h>

#include <string>

#include "backend/gpu_options.h"

namespace simile::backend::cuda {

// The functions of cuBLAS that the engine uses, found at run time. So the plug-in can be loaded on
// a machine without cuBLAS and can report that it is missing.
struct BlasLibrary {
  // Spelled out because cuBLAS's C++ header overloads cublasGemmEx.
  using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m,
                                  int n, int k, const void* alpha, const void* a,
                                  cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                                  int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                                  cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  Gemm gemm = nullptr;
  // Why the library cannot be used, in one sentence; then all functions are null. Otherwise empty.
  std::string missing;

  bool loaded() const { return gemm != nullptr; }
  // The workspace, without space for matrix products when there is no library.
  WorkspaceSize LimitSize(WorkspaceSize workspace) const;
};

// Loads the first of options.blas_libraries that exists, until the process ends, and tries it on
// the device.
BlasLibrary LoadBlas(const GpuOptions& options);

}  // namespace simile::backend::cuda
