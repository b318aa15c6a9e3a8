#include "data/matrix.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace simile::data {
namespace {

// Around 2 MiB, from where matrices are mapped in pages, with and without padding.
class MatrixSizesTest : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(MatrixSizesTest, StartsZeroedAlignedAndPadded) {
  const auto [row_count, dim] = GetParam();
  absl::StatusOr<Matrix> matrix = Matrix::Create(row_count, dim);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->row_count(), row_count);
  EXPECT_EQ(matrix->dim(), dim);
  EXPECT_EQ(matrix->bytes(), Matrix::BytesFor(row_count, dim));
  const MatrixView view = matrix->view();
  EXPECT_EQ(view.bytes(), row_count * PaddedDim(dim) * sizeof(float));
  EXPECT_GE(matrix->bytes(), view.bytes());
  EXPECT_EQ(matrix->bytes() % (2U << 20), matrix->bytes() < (2U << 20) ? view.bytes() : 0)
      << "whole huge pages";
  const std::uintptr_t alignment = matrix->bytes() >= (2U << 20) ? 2U << 20 : 64;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % alignment, 0U);
  EXPECT_TRUE(std::all_of(view.data(), view.data() + row_count * view.padded_dim(),
                          [](float value) { return value == 0; }));
  matrix->MutableRow(row_count - 1)[dim - 1] = 3;
  EXPECT_EQ(matrix->view()[row_count - 1][dim - 1], 3);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MatrixSizesTest,
                         testing::Values(std::pair(1, 1), std::pair(1, 32), std::pair(3, 33),
                                         std::pair(16383, 32), std::pair(16384, 32),
                                         std::pair(16385, 31), std::pair(50'000, 100)));

TEST(MatrixTest, MovesItsMemory) {
  absl::StatusOr<Matrix> from = Matrix::Create(2, 3);
  ASSERT_TRUE(from.ok());
  from->MutableRow(1)[2] = 5;
  const float* const data = from->view().data();
  Matrix to = *std::move(from);
  EXPECT_EQ(to.view().data(), data);
  EXPECT_EQ(to.view()[1][2], 5);
  Matrix assigned;
  EXPECT_EQ(assigned.row_count(), 0U);
  assigned = std::move(to);
  EXPECT_EQ(assigned.view()[1][2], 5);
}

TEST(MatrixTest, HasNoMemoryWhenEmpty) {
  const absl::StatusOr<Matrix> matrix = Matrix::Create(0, 384);
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->bytes(), 0U);
  EXPECT_EQ(matrix->dim(), 384U);
}

TEST(MatrixTest, RefusesMoreMemoryThanThereIs) {
  const absl::StatusOr<Matrix> huge = Matrix::Create(std::size_t{1} << 40, 4096);
  EXPECT_EQ(huge.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(huge.status().message()),
            "no memory for 1,099,511,627,776 rows of 4,096 dimensions (18,014,398,509,481,984 "
            "bytes)");
  const absl::StatusOr<Matrix> beyond =
      Matrix::Create(std::numeric_limits<std::size_t>::max() / 2, 4096);
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace simile::data
