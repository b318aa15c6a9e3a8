#include "engine/snapshots/verify_index.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fake_segment.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

using testing::HasSubstr;

constexpr Row kFirstRow = 1'000;

// Small enough for every row to be scored.
class VerifyIndexTest : public testing::Test {
 protected:
  std::string Message() {
    const absl::Status status = VerifyIndex(index_, rows_.view(), kFirstRow);
    if (status.ok()) return "ok";
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return std::string(status.message());
  }

  const data::Matrix rows_ = RandomMatrix(200, 33, 5);
  FakeSegment index_{rows_.view(), kFirstRow};
};

TEST_F(VerifyIndexTest, AcceptsACorrectIndex) { EXPECT_EQ(Message(), "ok"); }

TEST_F(VerifyIndexTest, FindsAScoreThatIsOneBitOff) {
  index_.spoil = [](SearchResult& result) {
    Hit& hit = result.Buffer(2)[9];
    hit.score = std::nextafter(hit.score, -std::numeric_limits<float>::infinity());
  };
  EXPECT_THAT(Message(), HasSubstr("the reference says"));
}

TEST_F(VerifyIndexTest, FindsTwoHitsInTheWrongOrder) {
  index_.spoil = [](SearchResult& result) { std::swap(result.Buffer(1)[3], result.Buffer(1)[4]); };
  EXPECT_THAT(Message(), HasSubstr("came after"));
}

TEST_F(VerifyIndexTest, FindsARowReturnedTwice) {
  index_.spoil = [](SearchResult& result) { result.Buffer(1)[4] = result.Buffer(1)[3]; };
  EXPECT_THAT(Message(), HasSubstr("came after"));
}

TEST_F(VerifyIndexTest, FindsANeighbourLeftOut) {
  // Returns hits 1 to 4 and 6 to 11: the fifth is left out.
  index_.spoil = [this](SearchResult& result) {
    const data::Matrix& rows = rows_;
    FakeSegment correct(rows.view(), kFirstRow);
    data::Matrix queries = data::Matrix::Create(1, rows.dim()).value();
    // The best hit of a unit row is the row itself, so it names the row that the query was.
    const Row query_row = result.Hits(3)[0].row - kFirstRow;
    std::copy_n(rows.view().PaddedRow(query_row), rows.view().padded_dim(), queries.MutableRow(0));
    QuerySpec spec;
    spec.k = 11;
    SearchResult eleven;
    ASSERT_TRUE(correct.Search({queries.view(), {&spec, 1}}, eleven).ok());
    for (std::size_t rank = 4; rank < 10; ++rank) result.Buffer(3)[rank] = eleven.Hits(0)[rank + 1];
  };
  EXPECT_THAT(Message(), HasSubstr("was left out"));
}

TEST_F(VerifyIndexTest, FindsARowThatIsNotThere) {
  index_.spoil = [](SearchResult& result) { result.Buffer(0)[0].row = kFirstRow + 200; };
  EXPECT_THAT(Message(), HasSubstr("row 1200, which the segment does not hold"));
}

TEST_F(VerifyIndexTest, FindsRowNumbersWithoutTheSegmentsFirstRow) {
  index_.spoil = [](SearchResult& result) { result.Buffer(0)[0].row -= kFirstRow; };
  EXPECT_THAT(Message(), HasSubstr("which the segment does not hold"));
}

TEST_F(VerifyIndexTest, FindsAnAnswerThatIsTooShort) {
  index_.spoil = [](SearchResult& result) { result.SetCount(3, 9); };
  EXPECT_THAT(Message(), HasSubstr("9 hits came back, 10 exist"));
}

TEST_F(VerifyIndexTest, FindsAnIndexOfAnotherShape) {
  const data::Matrix other = RandomMatrix(199, 33, 5);
  const absl::Status status = VerifyIndex(index_, other.view(), kFirstRow);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it holds 200 x 33, the data 199 x 33"));
}

TEST_F(VerifyIndexTest, ReturnsTheIndexsOwnError) {
  index_.status = absl::ResourceExhaustedError("no workspace");
  EXPECT_EQ(VerifyIndex(index_, rows_.view(), kFirstRow), index_.status);
}

// Answers no Search, for which queries would have to wait.
class AsideOnly final : public SegmentIndex {
 public:
  explicit AsideOnly(MatrixView rows) : index_(rows) {}

  std::size_t row_count() const override { return index_.row_count(); }
  std::size_t dim() const override { return index_.dim(); }
  absl::Status Search(const SearchBatch&, SearchResult&) const override {
    return absl::InternalError("a query would wait");
  }
  absl::Status SearchAside(const SearchBatch& batch, SearchResult& result) const override {
    return index_.Search(batch, result);
  }
  absl::StatusOr<FallbackBackend> Score(MatrixView, std::span<const Row>, std::span<float>,
                                        DeviceTime*) const override {
    return absl::InternalError("a query would wait");
  }

 private:
  const FakeSegment index_;
};

TEST(VerifyIndexAsideTest, HoldsNoQueryUp) {
  const data::Matrix rows = RandomMatrix(100, 20, 7);
  EXPECT_EQ(VerifyIndex(AsideOnly(rows.view()), rows.view(), 0), absl::OkStatus());
}

TEST(VerifyIndexZeroTest, FindsANegativeZero) {
  const data::Matrix rows = MatrixOf({{1, 0}, {0, 1}});
  FakeSegment index(rows.view());
  index.spoil = [](SearchResult& result) {
    for (std::size_t query = 0; query < result.batch(); ++query)
      result.Buffer(query)[1].score = -0.0F;
  };
  EXPECT_THAT(std::string(VerifyIndex(index, rows.view(), 0).message()), HasSubstr("-0x0p+0"));
}

// A query of zeros scores 0 with every row, so that its neighbours are the first rows.
TEST(VerifyIndexZeroTest, AcceptsRowsOfZeros) {
  data::Matrix rows = RandomMatrix(60, 5, 9);
  for (std::size_t row = 0; row < 60; ++row) {
    if (row % 7 != 3) std::fill_n(rows.MutableRow(row), 5, 0.0F);
  }
  EXPECT_TRUE(VerifyIndex(FakeSegment(rows.view()), rows.view(), 0).ok());
  const data::Matrix zeros = data::Matrix::Create(60, 5).value();
  EXPECT_TRUE(VerifyIndex(FakeSegment(zeros.view()), zeros.view(), 0).ok());
}

TEST(VerifyIndexZeroTest, AsksForTheNeighboursOfOtherRows) {
  data::Matrix rows = RandomMatrix(60, 5, 9);
  for (std::size_t row = 0; row < 60; row += 2) std::fill_n(rows.MutableRow(row), 5, 0.0F);
  FakeSegment index(rows.view());
  int found = 0;
  index.spoil = [&](SearchResult& result) {
    for (std::size_t query = 0; query < result.batch(); ++query) {
      const Hit& best = result.Hits(query)[0];
      found += best.row % 2 == 1 && best.score > 0.9F ? 1 : 0;
    }
  };
  EXPECT_TRUE(VerifyIndex(index, rows.view(), 0).ok());
  EXPECT_EQ(found, 4);
}

TEST(VerifyIndexSizeTest, AcceptsSegmentsOfOneRowAndOfEqualRows) {
  const data::Matrix one = RandomMatrix(1, 3, 1);
  EXPECT_TRUE(VerifyIndex(FakeSegment(one.view()), one.view(), 0).ok());
  const data::Matrix equal =
      MatrixOf(std::vector<std::vector<float>>(40, std::vector<float>{0.6F, 0.8F}));
  EXPECT_TRUE(VerifyIndex(FakeSegment(equal.view()), equal.view(), 0).ok());
}

// More rows than are scored for each query: the sample must find the error.
TEST(VerifyIndexSizeTest, ComparesASampleOfALargeSegmentWithTheReference) {
  constexpr std::size_t kDim = 2'000;
  const data::Matrix rows = RandomMatrix(6'000, kDim, 7);
  FakeSegment index(rows.view());
  EXPECT_TRUE(VerifyIndex(index, rows.view(), 0).ok());
  // The first half of the segment is never searched.
  FakeSegment half(rows.view().Slice(3'000, 3'000), 3'000);
  index.spoil = [&](SearchResult& result) {
    for (std::size_t query = 0; query < result.batch(); ++query) {
      QuerySpec spec;
      SearchResult found;
      const MatrixView row = rows.view().Slice(result.Hits(query)[0].row, 1);
      ASSERT_TRUE(half.Search({row, {&spec, 1}}, found).ok());
      std::copy(found.Hits(0).begin(), found.Hits(0).end(), result.Buffer(query).begin());
    }
  };
  EXPECT_THAT(std::string(VerifyIndex(index, rows.view(), 0).message()), HasSubstr("was left out"));
}

}  // namespace
}  // namespace simile::engine
