#include "simile/matrix_view.h"

#include <gtest/gtest.h>

#include <vector>

namespace simile {
namespace {

TEST(PaddedDimTest, RoundsUpToWholeLanes) {
  EXPECT_EQ(PaddedDim(1), 32U);
  EXPECT_EQ(PaddedDim(31), 32U);
  EXPECT_EQ(PaddedDim(32), 32U);
  EXPECT_EQ(PaddedDim(33), 64U);
  EXPECT_EQ(PaddedDim(384), 384U);
  EXPECT_EQ(PaddedDim(4'096), 4'096U);
}

TEST(MatrixViewTest, FindsRowsByTheirPaddedStride) {
  std::vector<float> floats(std::size_t{3} * 64);
  const MatrixView view(floats.data(), 3, 33);
  EXPECT_EQ(view.PaddedRow(2), floats.data() + 128);
  EXPECT_EQ(view[1].data(), floats.data() + 64);
  EXPECT_EQ(view[1].size(), 33U);
  EXPECT_EQ(view.bytes(), sizeof(float) * 3 * 64);
}

TEST(MatrixViewTest, SlicesWholeRows) {
  std::vector<float> floats(std::size_t{5} * 32);
  const MatrixView slice = MatrixView(floats.data(), 5, 7).Slice(1, 3);
  EXPECT_EQ(slice.row_count(), 3U);
  EXPECT_EQ(slice.dim(), 7U);
  EXPECT_EQ(slice.PaddedRow(0), floats.data() + 32);
}

TEST(MatrixViewTest, MayBeEmpty) {
  EXPECT_EQ(MatrixView().row_count(), 0U);
  EXPECT_EQ(MatrixView().bytes(), 0U);
}

}  // namespace
}  // namespace simile
