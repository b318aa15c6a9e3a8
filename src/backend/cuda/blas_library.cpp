#include "backend/cuda/blas_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <vector>

#include <fmt/format.h>

#include "backend/cuda/device_error.h"

namespace simile::backend::cuda {
namespace {

constexpr int kToolkit = CUDART_VERSION / 1000;

template <class Function>
bool Find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) missing = name;
  return function != nullptr;
}

}  // namespace

absl::StatusOr<BlasLibrary> LoadBlas(std::span<const std::string> names) {
  const std::vector<std::string> own{fmt::format("libcublas.so.{}", kToolkit)};
  const std::span<const std::string> tried = names.empty() ? std::span(own) : names;
  std::string errors;
  for (const std::string& name : tried) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = dlerror();
      errors += fmt::format("{}{}", errors.empty() ? "" : "; ", error != nullptr ? error : name);
      continue;
    }
    BlasLibrary blas;
    std::string missing;
    if (Find(library, "cublasCreate_v2", blas.create, missing) &&
        Find(library, "cublasDestroy_v2", blas.destroy, missing) &&
        Find(library, "cublasSetStream_v2", blas.set_stream, missing) &&
        Find(library, "cublasSetWorkspace_v2", blas.set_workspace, missing) &&
        Find(library, "cublasSetMathMode", blas.set_math_mode, missing) &&
        Find(library, "cublasGemmEx", blas.gemm, missing)) {
      return blas;
    }
    errors += fmt::format("{}{} has no {}", errors.empty() ? "" : "; ", name, missing);
  }
  return absl::NotFoundError(
      fmt::format("cuBLAS cannot be loaded: {}; install the cuBLAS of CUDA {} (libcublas-{}-*)",
                  errors, kToolkit, kToolkit));
}

absl::Status TryBlas(const BlasLibrary& blas, int device) {
  cublasHandle_t handle = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (cudaSetDevice(device) == cudaSuccess) status = blas.create(&handle);
  if (handle != nullptr) blas.destroy(handle);
  cudaGetLastError();  // clears an error that is not sticky
  if (status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_ALLOC_FAILED) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      fmt::format("cuBLAS cannot be used: {}; libcublas and libcublasLt must be of one version",
                  MessageOf(status, "cublasCreate")));
}

}  // namespace simile::backend::cuda
