#pragma once

#include <cublas_v2.h>

#include <span>
#include <string>

#include <absl/status/statusor.h>

namespace simile::backend::cuda {

// The functions of cuBLAS that are used, found at run time: a machine without it answers on the CPU
// and says so, and the plug-in can be loaded everywhere.
struct BlasLibrary {
  // In C++ its header overloads the name.
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
};

// Loads the first of the libraries that is there, for the life of the process.
//   names  as for dlopen; empty for the name that belongs to the toolkit of this build
// Errors: kFailedPrecondition, what was tried and the loader's words.
absl::StatusOr<BlasLibrary> LoadBlas(std::span<const std::string> names);

}  // namespace simile::backend::cuda
