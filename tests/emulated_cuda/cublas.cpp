// cuBLAS as plain loops, queued on the handle's stream.

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "emulated_cuda/device_state.h"

namespace emulated_cuda {
namespace {

constexpr int kVersion = 130000;
constexpr std::size_t kTile = 64;
using Tile = std::array<float, kTile>;

// CUDA defines no order for the additions of a sum.
enum class SumOrder { kForward, kBackward, kPairwise };

struct Matrix {
  const void* data;
  cudaDataType type;
  std::size_t pitch;
  bool transposed;

  std::size_t value_bytes() const { return type == CUDA_R_16F ? 2 : 4; }
  float At(std::size_t row, std::size_t column) const {
    const std::size_t at = transposed ? row * pitch + column : column * pitch + row;
    const char* const value = static_cast<const char*>(data) + at * value_bytes();
    if (type == CUDA_R_16F) {
      unsigned short bits;
      std::memcpy(&bits, value, sizeof(bits));
      return kHalfValues[bits];
    }
    float number;
    std::memcpy(&number, value, sizeof(number));
    return number;
  }
};

struct Gemm {
  std::size_t m, n, k;
  float alpha, beta;
  Matrix a, b;
  char* c;
  cudaDataType c_type;
  std::size_t c_pitch;

  std::size_t c_bytes() const { return c_type == CUDA_R_16F ? 2 : 4; }
};

// Adds left[p][*] * right[p] for p in [begin, end), `width` sums at once.
void Accumulate(const float* left, const float* right, std::size_t begin, std::size_t end,
                SumOrder order, Tile& sums) {
  if (order == SumOrder::kPairwise && end - begin > 8) {
    const std::size_t middle = begin + (end - begin) / 2;
    Tile upper{};
    Accumulate(left, right, begin, middle, order, sums);
    Accumulate(left, right, middle, end, order, upper);
    for (std::size_t i = 0; i < kTile; ++i) sums[i] += upper[i];
    return;
  }
  for (std::size_t p = begin; p < end; ++p) {
    const std::size_t at = order == SumOrder::kBackward ? end - 1 - (p - begin) : p;
    const float factor = right[at];
    const float* const row = left + at * kTile;
    for (std::size_t i = 0; i < kTile; ++i) sums[i] += row[i] * factor;
  }
}

void Store(const Gemm& gemm, std::size_t row, std::size_t column, float sum) {
  char* const to = gemm.c + (column * gemm.c_pitch + row) * gemm.c_bytes();
  float value = gemm.alpha * sum;
  if (gemm.beta != 0) {  // else C is not read
    const Matrix old{gemm.c, gemm.c_type, gemm.c_pitch, false};
    value += gemm.beta * old.At(row, column);
  }
  if (gemm.c_type == CUDA_R_16F) {
    const unsigned short bits = HalfBits(value);
    std::memcpy(to, &bits, sizeof(bits));
  } else {
    std::memcpy(to, &value, sizeof(value));
  }
}

void Multiply(const Gemm& gemm, SumOrder order) {
  std::vector<float> right(gemm.n * gemm.k), left(gemm.k * kTile);
  for (std::size_t column = 0; column < gemm.n; ++column) {
    for (std::size_t p = 0; p < gemm.k; ++p) right[column * gemm.k + p] = gemm.b.At(p, column);
  }
  for (std::size_t first = 0; first < gemm.m; first += kTile) {
    const std::size_t rows = std::min(kTile, gemm.m - first);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t p = 0; p < gemm.k; ++p) left[p * kTile + i] = gemm.a.At(first + i, p);
    }
    for (std::size_t column = 0; column < gemm.n; ++column) {
      Tile sums{};
      Accumulate(left.data(), right.data() + column * gemm.k, 0, gemm.k, order, sums);
      for (std::size_t i = 0; i < rows; ++i) Store(gemm, first + i, column, sums[i]);
    }
  }
}

// cuBLAS overwrites its workspace: nothing else may be kept there.
void SpoilWorkspace(const cublasContext& handle) {
  if (handle.workspace == nullptr) return;
  constexpr std::size_t kEdge = 4096;
  const std::size_t bytes = std::min(kEdge, handle.workspace_bytes);
  Poison(handle.workspace, bytes);
  Poison(static_cast<char*>(handle.workspace) + handle.workspace_bytes - bytes, bytes);
}

cublasStatus_t StatusOf(cudaError_t error) {
  if (error == cudaSuccess) return CUBLAS_STATUS_SUCCESS;
  return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                            : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool IsKnown(cudaDataType type) { return type == CUDA_R_16F || type == CUDA_R_32F; }

struct Strides {
  std::size_t a = 0, b = 0, c = 0;
};

cublasStatus_t QueueGemm(cublasHandle_t handle, const Gemm& gemm, Strides strides, int batch) {
  DeviceState& state = State();
  const cudaStream_t stream = state.streams.Find(handle->stream);
  if (stream == nullptr) return CUBLAS_STATUS_EXECUTION_FAILED;
  const auto order = static_cast<SumOrder>(state.options.seed % 3);
  return StatusOf(state.streams.Queue(stream, [=, context = *handle] {
    SpoilWorkspace(context);
    Gemm one = gemm;
    for (int i = 0; i < batch; ++i) {
      const auto at = static_cast<std::size_t>(i);
      one.a.data = static_cast<const char*>(gemm.a.data) + at * strides.a * gemm.a.value_bytes();
      one.b.data = static_cast<const char*>(gemm.b.data) + at * strides.b * gemm.b.value_bytes();
      one.c = gemm.c + at * strides.c * gemm.c_bytes();
      Multiply(one, order);
    }
    CheckRedZones("cublasGemm");
  }));
}

}  // namespace
}  // namespace emulated_cuda

using emulated_cuda::Call;
using emulated_cuda::State;
using emulated_cuda::StatusOf;

extern "C" {

// NOLINTBEGIN: these names are cuBLAS's, not ours.

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const Call call("cublasCreate");
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  *handle = State().blas.Add(std::make_unique<cublasContext>());
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const Call call("cublasDestroy");
  const bool known = State().blas.Remove(handle);
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  return known ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t /*handle*/, int* version) {
  const Call call("cublasGetVersion");
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  *version = emulated_cuda::kVersion;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  const Call call("cublasSetStream");
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  if (!State().blas.Contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  // As in cuBLAS, this resets the workspace to its own.
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  const Call call("cublasSetWorkspace");
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  if (!State().blas.Contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (workspace != nullptr && !State().memory.IsLive(workspace, bytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->workspace = workspace;
  handle->workspace_bytes = workspace == nullptr ? 0 : bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t /*mode*/) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  return State().blas.Contains(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown cuBLAS status";
}

}  // extern "C"

namespace emulated_cuda {
namespace {

// Column-major: c [m, n] = alpha * a [m, k] * b [k, n] + beta * c. fp16 or fp32 in and out, summed
// in fp32; alpha and beta lie on the host.
cublasStatus_t CheckedGemm(const Call& call, cublasHandle_t handle, cublasOperation_t op_a,
                           cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                           const void* a, cudaDataType a_type, int lda, const void* b,
                           cudaDataType b_type, int ldb, const void* beta, void* c,
                           cudaDataType c_type, int ldc, cublasComputeType_t compute,
                           Strides strides, int batch) {
  if (call.error() != cudaSuccess) return StatusOf(call.error());
  if (!State().blas.Contains(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool a_transposed = op_a == CUBLAS_OP_T, b_transposed = op_b == CUBLAS_OP_T;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < std::max(1, a_transposed ? k : m) ||
      ldb < std::max(1, b_transposed ? n : k) || ldc < std::max(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool in_float = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
  if (!IsKnown(a_type) || b_type != a_type || !IsKnown(c_type) || !in_float ||
      (a_type == CUDA_R_32F && c_type != CUDA_R_32F)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
  Gemm gemm{};
  gemm.m = static_cast<std::size_t>(m);
  gemm.n = static_cast<std::size_t>(n);
  gemm.k = static_cast<std::size_t>(k);
  gemm.alpha = *static_cast<const float*>(alpha);
  gemm.beta = *static_cast<const float*>(beta);
  gemm.a = {a, a_type, static_cast<std::size_t>(lda), a_transposed};
  gemm.b = {b, b_type, static_cast<std::size_t>(ldb), b_transposed};
  gemm.c = static_cast<char*>(c);
  gemm.c_type = c_type;
  gemm.c_pitch = static_cast<std::size_t>(ldc);
  return QueueGemm(handle, gemm, strides, batch);
}

}  // namespace
}  // namespace emulated_cuda

extern "C" {

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t /*algorithm*/) {
  const Call call(__func__);
  return emulated_cuda::CheckedGemm(call, handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b,
                                    b_type, ldb, beta, c, c_type, ldc, compute, {}, 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
    const void* alpha, const void* a, cudaDataType a_type, int lda, long long stride_a,
    const void* b, cudaDataType b_type, int ldb, long long stride_b, const void* beta, void* c,
    cudaDataType c_type, int ldc, long long stride_c, int batch, cublasComputeType_t compute,
    cublasGemmAlgo_t /*algorithm*/) {
  const Call call(__func__);
  const emulated_cuda::Strides strides{static_cast<std::size_t>(stride_a),
                                       static_cast<std::size_t>(stride_b),
                                       static_cast<std::size_t>(stride_c)};
  return emulated_cuda::CheckedGemm(call, handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b,
                                    b_type, ldb, beta, c, c_type, ldc, compute, strides, batch);
}

// NOLINTEND
}
