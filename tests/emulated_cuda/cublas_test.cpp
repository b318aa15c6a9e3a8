#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <dlfcn.h>

#include <cmath>
#include <random>
#include <set>

#include "emulated_cuda/device_array.h"

namespace emulated_cuda {
namespace {

struct Shape {
  int m, n, k;
  bool transpose_a, transpose_b;
};

class GemmTest : public testing::TestWithParam<Shape> {};

// Integers so small that every order of the sum is exact.
TEST_P(GemmTest, MatchesLoopsUnderEverySeed) {
  const auto [m, n, k, transpose_a, transpose_b] = GetParam();
  const int lda = (transpose_a ? k : m) + 1, ldb = (transpose_b ? n : k) + 2, ldc = m + 3;
  std::mt19937 random(7);
  std::vector<__half> a(static_cast<std::size_t>(lda * (transpose_a ? m : k)));
  std::vector<__half> b(static_cast<std::size_t>(ldb * (transpose_b ? k : n)));
  for (auto* values : {&a, &b}) {
    for (__half& value : *values) value = __half(static_cast<int>(random() % 9) - 4);
  }
  const auto at = [](const std::vector<__half>& values, int pitch, bool transposed, int row,
                     int column) {
    const int index = transposed ? row * pitch + column : column * pitch + row;
    return __half2float(values[static_cast<std::size_t>(index)]);
  };
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ResetDevice(WithSeed(seed));
    const DeviceArray<__half> d_a(a), d_b(b);
    const DeviceArray<float> d_c(std::vector<float>(static_cast<std::size_t>(ldc * n), 5.0F));
    cublasHandle_t handle = nullptr;
    ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    const float alpha = 2, beta = seed % 2 == 0 ? 0 : 3;
    ASSERT_EQ(cublasGemmEx(handle, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, d_a.data(),
                           CUDA_R_16F, lda, d_b.data(), CUDA_R_16F, ldb, &beta, d_c.data(),
                           CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              CUBLAS_STATUS_SUCCESS);
    const std::vector<float> got = d_c.Read();
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        float expected = 0;
        for (int p = 0; p < k; ++p) {
          expected += at(a, lda, transpose_a, row, p) * at(b, ldb, transpose_b, p, column);
        }
        ASSERT_EQ(got[static_cast<std::size_t>(column * ldc + row)], alpha * expected + beta * 5);
      }
      // Between the columns nothing is written.
      ASSERT_EQ(got[static_cast<std::size_t>(column * ldc + m)], 5.0F);
    }
    EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest,
                         testing::Values(Shape{1, 1, 1, true, false}, Shape{63, 3, 17, true, false},
                                         Shape{64, 1, 40, true, false},
                                         Shape{65, 5, 33, false, false},
                                         Shape{130, 2, 9, false, true},
                                         Shape{7, 6, 100, true, true}));

float SumOfThirds(std::uint64_t seed) {
  ResetDevice(WithSeed(seed));
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
  const DeviceArray<float> a(values), b(std::vector<float>(1000, 1.0F)), c(1);
  cublasHandle_t handle = nullptr;
  EXPECT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  EXPECT_EQ(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 1000, &one, a.data(), CUDA_R_32F,
                         1000, b.data(), CUDA_R_32F, 1000, &zero, c.data(), CUDA_R_32F, 1,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  const float sum = c.Read()[0];
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  return sum;
}

TEST(CublasTest, OrderOfTheSumDependsOnTheSeed) {
  const std::set<float> sums{SumOfThirds(0), SumOfThirds(1), SumOfThirds(2)};
  EXPECT_EQ(sums.size(), 3U);
  EXPECT_EQ(SumOfThirds(1), SumOfThirds(1));
  EXPECT_NEAR(*sums.begin(), *sums.rbegin(), 1e-4);
}

TEST(CublasTest, ScribblesOverItsWorkspace) {
  ResetDevice(WithSeed(1));
  const DeviceArray<float> values(std::vector<float>(4, 1.0F)),
      workspace(std::vector<float>(64, 7)), out(1);
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetWorkspace(handle, workspace.data(), workspace.bytes()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace(handle, workspace.data(), workspace.bytes() + 1),
            CUBLAS_STATUS_INVALID_VALUE);
  ASSERT_EQ(cublasSetMathMode(handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
            CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 4, &one, values.data(), CUDA_R_32F,
                         4, values.data(), CUDA_R_32F, 4, &zero, out.data(), CUDA_R_32F, 1,
                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(out.Read()[0], 4.0F);
  for (const float value : workspace.Read()) EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST(CublasTest, OpensAsTheLibrary) {
  Dl_info here{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&ResetDevice), &here), 0);
  void* const library = dlopen(here.dli_fname, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const char* name :
       {"cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2",
        "cublasSetMathMode", "cublasGetVersion_v2", "cublasGemmEx"}) {
    EXPECT_NE(dlsym(library, name), nullptr) << name;
  }
  dlclose(library);
}

}  // namespace
}  // namespace emulated_cuda
