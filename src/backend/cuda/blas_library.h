#pragma once

#include <cublas_v2.h>

#include <span>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::backend::cuda {

// The functions of cuBLAS that are used, found at run time, so that the plug-in can be loaded on a
// machine without cuBLAS and report that it is missing.
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

  bool loaded() const { return gemm != nullptr; }
};

// Loads the first of the libraries that exists, until the process ends.
//   names  as for dlopen; empty for the name that belongs to the toolkit of this build
// Errors: kNotFound, with the names tried and the loader's messages.
absl::StatusOr<BlasLibrary> LoadBlas(std::span<const std::string> names);

// Makes a handle on the device and destroys it: whether the libraries that this one loads fit it
// only shows then.
// Errors: kFailedPrecondition, with cuBLAS's status. Not a lack of memory or a failed device, which
//         the engine reports by itself.
absl::Status TryBlas(const BlasLibrary& blas, int device);

}  // namespace simile::backend::cuda
