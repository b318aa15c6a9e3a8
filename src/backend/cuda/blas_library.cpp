#include "backend/cuda/blas_library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <span>
#include <string>
#include <utility>

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

// Loads the first library that exists. Returns why none can be loaded; empty on success.
//   names  as for dlopen; empty for the name that belongs to the toolkit of this build
std::string Load(std::span<const std::string> names, BlasLibrary& blas) {
  const std::string own = fmt::format("libcublas.so.{}", kToolkit);
  const std::span<const std::string> tried = names.empty() ? std::span(&own, 1) : names;
  std::string errors;
  for (const std::string& name : tried) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* error = dlerror();
      errors += fmt::format("{}{}", errors.empty() ? "" : "; ", error != nullptr ? error : name);
      continue;
    }
    std::string missing;
    if (Find(library, "cublasCreate_v2", blas.create, missing) &&
        Find(library, "cublasDestroy_v2", blas.destroy, missing) &&
        Find(library, "cublasSetStream_v2", blas.set_stream, missing) &&
        Find(library, "cublasSetWorkspace_v2", blas.set_workspace, missing) &&
        Find(library, "cublasSetMathMode", blas.set_math_mode, missing) &&
        Find(library, "cublasGemmEx", blas.gemm, missing)) {
      return "";
    }
    errors += fmt::format("{}{} has no {}", errors.empty() ? "" : "; ", name, missing);
  }
  return fmt::format("cuBLAS cannot be loaded: {}; install the cuBLAS of CUDA {} (libcublas-{}-*)",
                     errors, kToolkit, kToolkit);
}

// Makes a handle on the device and destroys it. Only then does it show whether the libraries that
// cuBLAS loads fit. Returns why the library cannot be used, except for lack of memory or a failed
// device, which the engine reports itself.
std::string Try(int device, const BlasLibrary& blas) {
  cublasHandle_t handle = nullptr;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (cudaSetDevice(device) == cudaSuccess) status = blas.create(&handle);
  if (handle != nullptr) blas.destroy(handle);
  cudaGetLastError();  // clears an error that is not sticky
  if (status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_ALLOC_FAILED) return "";
  return fmt::format("cuBLAS cannot be used: {}; libcublas and libcublasLt must be of one version",
                     FormatError(status, "cublasCreate"));
}

}  // namespace

WorkspaceSize BlasLibrary::LimitSize(WorkspaceSize workspace) const {
  if (!loaded()) workspace.tile_bytes = workspace.blas_bytes = 0;
  return workspace;
}

BlasLibrary LoadBlas(const GpuOptions& options) {
  BlasLibrary blas;
  std::string missing = Load(options.blas_libraries, blas);
  if (missing.empty()) missing = Try(options.device, blas);
  if (!missing.empty()) blas = {.missing = std::move(missing)};
  return blas;
}

}  // namespace simile::backend::cuda
