// Compiles when the header that replaces cuBLAS's in builds without it says the same as cuBLAS's.
#include <cublas_v2.h>

#include <cstddef>

namespace ours {
#include "../../../cmake/cuda12/cublas_v2.h"
}

namespace {

template <class Ours, class Theirs>
constexpr bool Same(Ours of_ours, Theirs of_theirs) {
  return static_cast<long>(of_ours) == static_cast<long>(of_theirs) &&
         sizeof(Ours) == sizeof(Theirs);
}

static_assert(Same(ours::CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_SUCCESS));
static_assert(Same(ours::CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED));
static_assert(Same(ours::CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED));
static_assert(Same(ours::CUBLAS_OP_N, CUBLAS_OP_N) && Same(ours::CUBLAS_OP_T, CUBLAS_OP_T));
static_assert(Same(ours::CUBLAS_DEFAULT_MATH, CUBLAS_DEFAULT_MATH));
static_assert(Same(ours::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION,
                   CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
static_assert(Same(ours::CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F));
static_assert(Same(ours::CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT));

// The result and the math mode are enumerations of each header's own, whose sizes are compared
// above.
template <class Ours, class Theirs>
constexpr bool kSameParameters = false;
template <class Ours, class Theirs, class... Parameters>
constexpr bool kSameParameters<Ours (*)(Parameters...), Theirs (*)(Parameters...)> = true;
static_assert(kSameParameters<decltype(&ours::cublasCreate_v2), decltype(&::cublasCreate_v2)>);
static_assert(kSameParameters<decltype(&ours::cublasDestroy_v2), decltype(&::cublasDestroy_v2)>);
static_assert(
    kSameParameters<decltype(&ours::cublasSetStream_v2), decltype(&::cublasSetStream_v2)>);
static_assert(
    kSameParameters<decltype(&ours::cublasSetWorkspace_v2), decltype(&::cublasSetWorkspace_v2)>);

}  // namespace
