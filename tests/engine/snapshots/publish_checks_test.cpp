#include "engine/snapshots/publish_checks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/stable_hash.h"
#include "certificate/canonical_score.h"
#include "engine/fake_backend.h"
#include "engine/fake_clock.h"
#include "engine/fake_segment.h"
#include "engine/sample_data.h"
#include "engine/snapshots/publisher.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::engine {
namespace {

using base::ErrorReason;
using testing::HasSubstr;

// A collection in a folder: vectors [ids, dim], for the dot metric.
struct Items {
  std::size_t dim = 0;
  std::vector<float> vectors;
  std::vector<std::string> ids;
};

Items RandomItems(std::size_t count, std::uint64_t seed) {
  Items items{6, {}, {}};
  std::mt19937_64 random(seed);
  std::normal_distribution<float> value;
  for (std::size_t i = 0; i < count * items.dim; ++i) items.vectors.push_back(value(random));
  for (std::size_t i = 0; i < count; ++i) items.ids.push_back(fmt::format("item-{}", i));
  return items;
}

// All rows are the same but for the first `different`.
Items EqualItems(std::size_t count, std::size_t different = 0) {
  Items items = RandomItems(count, 1);
  std::fill(items.vectors.begin() + static_cast<std::ptrdiff_t>(different * items.dim),
            items.vectors.end(), 0.5F);
  return items;
}

// The ids of an item's 10 nearest, by sums of double precision.
std::set<std::string> FindNearest(const Items& items, std::size_t item) {
  std::vector<std::pair<double, std::size_t>> scores;
  for (std::size_t other = 0; other < items.ids.size(); ++other) {
    if (other == item) continue;
    double sum = 0;
    for (std::size_t i = 0; i < items.dim; ++i) {
      sum += double{items.vectors[item * items.dim + i]} * items.vectors[other * items.dim + i];
    }
    scores.emplace_back(-sum, other);
  }
  std::ranges::sort(scores);
  std::set<std::string> ids;
  for (std::size_t i = 0; i < std::min<std::size_t>(10, scores.size()); ++i) {
    ids.insert(items.ids[scores[i].second]);
  }
  return ids;
}

class CanaryQueriesTest : public testing::Test {
 protected:
  absl::Status Serve(const Items& items) { return publisher_.Create(Of(items, 0)).status(); }
  absl::Status Replace(const Items& items, double min_overlap = 0) {
    return publisher_.Replace(Of(items, min_overlap)).status();
  }
  absl::Status ReplaceWithAnyShape(const Items& items) {
    Publisher::Change change = Of(items, 0);
    change.allow_shape_change = true;
    return publisher_.Replace(change).status();
  }
  SnapshotPtr served() const { return store_.Pin("items").value(); }
  std::uint64_t version() const { return served()->version; }

 private:
  Publisher::Change Of(const Items& items, double min_overlap) {
    const auto folder = scratch_.path() / fmt::format("{}", ++folders_);
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "vectors.npy", std::ios::binary) << NpyFile(items.vectors, items.dim);
    std::ofstream(folder / "collection.json") << R"({"metric": "dot"})";
    std::ofstream payload(folder / "metadata.jsonl");
    for (const std::string& id : items.ids) payload << fmt::format("{{\"id\": \"{}\"}}\n", id);
    Publisher::Change change;
    change.collection = "items";
    change.folder = folder;
    change.min_overlap = min_overlap;
    return change;
  }

  const ScratchFolder scratch_;
  int folders_ = 0;
  FakeClock clock_;
  FakeBackend backend_;
  SnapshotStore store_{clock_};
  Publisher publisher_{{}, backend_, store_, clock_};
};

TEST_F(CanaryQueriesTest, RefuseVectorsThatAllScoreTheSame) {
  ASSERT_TRUE(Serve(RandomItems(300, 1)).ok());
  const absl::Status status = Replace(EqualItems(1'200));
  EXPECT_EQ(base::ReasonOf(status), ErrorReason::kAllScoresEqual) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("of 1,200 rows, every pair in a sample scores 1.5"));
  EXPECT_EQ(version(), 1U);
  const Items few_differ = EqualItems(100, 10);
  EXPECT_TRUE(Replace(few_differ).ok());
  EXPECT_EQ(version(), 2U);
}

// Rows that could score infinity, though each of their values is finite, are not read: the longest
// that are score 2^120 with each other.
TEST_F(CanaryQueriesTest, MeetOnlyRowsWhoseScoresAreFinite) {
  ASSERT_TRUE(Serve(RandomItems(300, 1)).ok());
  const Items random = RandomItems(300, 2);
  Items long_rows = random;
  Items longest = random;
  for (std::size_t row = 0; row < random.ids.size(); ++row) {
    const auto begin = longest.vectors.begin() + static_cast<std::ptrdiff_t>(row * longest.dim);
    const std::span<float> values(begin, longest.dim);
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    for (float& value : values) value *= static_cast<float>(0x1p60 * 0.999 / std::sqrt(squares));
  }
  for (float& value : long_rows.vectors) value *= 1e30F;
  const absl::Status status = Replace(long_rows);
  EXPECT_EQ(base::ReasonOf(status), ErrorReason::kInvalidFiles) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("lengths must lie between"));
  EXPECT_EQ(version(), 1U);
  EXPECT_TRUE(Replace(longest).ok());
  const SnapshotPtr snapshot = served();
  const MatrixView rows = snapshot->dataset->vectors.view();
  for (std::size_t row = 0; row < rows.row_count(); ++row) {
    EXPECT_TRUE(std::isfinite(certificate::CanonicalScoreReference(rows[0], rows[row])));
  }
}

TEST_F(CanaryQueriesTest, AcceptEqualRowsWhereTheyMayBeMeant) {
  ASSERT_TRUE(Serve(RandomItems(300, 1)).ok());
  EXPECT_TRUE(Replace(EqualItems(15)).ok()) << "few rows";
  EXPECT_TRUE(Replace(RandomItems(300, 2)).ok());
  EXPECT_FALSE(Replace(EqualItems(16)).ok());
}

TEST_F(CanaryQueriesTest, AcceptRowsThatHaveNothingInCommon) {
  ASSERT_TRUE(Serve(RandomItems(300, 1)).ok());
  Items items = RandomItems(2'000, 2);
  items.dim = 2'000;
  items.vectors.assign(items.dim * items.dim, 0);
  for (std::size_t row = 0; row < items.dim; ++row) items.vectors[row * items.dim + row] = 1;
  EXPECT_EQ(base::ReasonOf(Replace(items)), ErrorReason::kShapeChange);
  EXPECT_TRUE(ReplaceWithAnyShape(items).ok());
}

TEST_F(CanaryQueriesTest, AcceptEqualScoresInPlaceOfEqualScores) {
  ASSERT_TRUE(Serve(EqualItems(20)).ok());
  EXPECT_TRUE(Replace(EqualItems(30)).ok());
}

TEST_F(CanaryQueriesTest, RefuseLessOverlapThanAskedAndSayHowMuchThereIs) {
  // So few that each is in the sample. Half of the vectors are new, and the items come in another
  // order.
  const Items served = RandomItems(50, 1);
  Items next = served;
  const Items others = RandomItems(25, 2);
  std::ranges::copy(others.vectors, next.vectors.begin());
  std::ranges::reverse(next.vectors);
  std::ranges::reverse(next.ids);
  for (std::size_t row = 0; row < next.ids.size(); ++row) {
    const auto begin = next.vectors.begin() + static_cast<std::ptrdiff_t>(row * next.dim);
    std::reverse(begin, begin + static_cast<std::ptrdiff_t>(next.dim));
  }
  double overlap = 0;
  for (std::size_t item = 0; item < served.ids.size(); ++item) {
    const std::set<std::string> now = FindNearest(next, served.ids.size() - 1 - item);
    for (const std::string& id : FindNearest(served, item)) overlap += now.contains(id) ? 1 : 0;
  }
  overlap /= 500;
  ASSERT_GT(overlap, 0.2);
  ASSERT_LT(overlap, 0.8);

  ASSERT_TRUE(Serve(served).ok());
  const absl::Status status = Replace(next, overlap + 0.01);
  EXPECT_EQ(base::ReasonOf(status), ErrorReason::kOverlapTooLow) << status;
  EXPECT_EQ(base::FieldOf(status), "min_overlap");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(fmt::format("of the 10 nearest items of 50 sampled items, {:.1f} % stay",
                                    100 * overlap)));
  EXPECT_EQ(version(), 1U);
  std::printf("an overlap of %.1f %% refused where %.1f %% are asked, taken where %.1f %% are\n",
              100 * overlap, 100 * (overlap + 0.01), 100 * (overlap - 0.01));
  EXPECT_TRUE(Replace(next, overlap - 0.01).ok());
  EXPECT_EQ(version(), 2U);
}

TEST_F(CanaryQueriesTest, FindTheWholeOverlapOfTheSameVectors) {
  Items items = RandomItems(2'000, 3);
  ASSERT_TRUE(Serve(items).ok());
  items.ids.emplace_back("one-more");  // far from all others
  items.vectors.insert(items.vectors.end(), items.dim, 0.0F);
  items.vectors.back() = 1e-6F;
  EXPECT_TRUE(Replace(items, 1).ok());
}

TEST_F(CanaryQueriesTest, FindNoOverlapWithoutAnItemInCommon) {
  ASSERT_TRUE(Serve(RandomItems(100, 1)).ok());
  Items renamed = RandomItems(100, 1);
  for (std::string& id : renamed.ids) id += "-new";
  const absl::Status status = Replace(renamed, 0.01);
  EXPECT_EQ(base::ReasonOf(status), ErrorReason::kOverlapTooLow);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none of the sampled items"));
  EXPECT_TRUE(Replace(renamed, 0).ok());
}

// Of the rows whose ids one in `step` hashes choose, without one that is not searchable: the ids of
// the 10 nearest to a row.
std::set<std::string> FindNearestInSample(const Snapshot& snapshot, Row row, std::uint64_t step) {
  const data::IdIndex& ids = snapshot.dataset->ids;
  const MatrixView vectors = snapshot.dataset->vectors.view();
  std::vector<std::pair<float, Row>> scores;
  for (Row other = 0; other < ids.size(); ++other) {
    if (other == row || base::StableHash::Hash64(ids.Id(other)) % step != 0) continue;
    if (snapshot.searchable != nullptr && !snapshot.searchable->Allows(other)) continue;
    scores.emplace_back(-certificate::CanonicalScoreReference(vectors[row], vectors[other]), other);
  }
  std::ranges::sort(scores);
  scores.resize(std::min<std::size_t>(10, scores.size()));
  std::set<std::string> nearest;
  for (const auto& [score, other] : scores) nearest.insert(ids.Id(other));
  return nearest;
}

// Unit vectors of these items, of which a share has the vectors of another seed.
std::shared_ptr<data::Dataset> MakeDataset(const std::vector<std::size_t>& items,
                                           int others_percent) {
  const data::Matrix vectors = RandomMatrix(1 + *std::ranges::max_element(items), 6, 1);
  const data::Matrix others = RandomMatrix(vectors.row_count(), 6, 2);
  auto dataset = std::make_shared<data::Dataset>();
  dataset->vectors = data::Matrix::Create(items.size(), 6).value();
  std::vector<std::string> ids;
  for (std::size_t row = 0; row < items.size(); ++row) {
    ids.push_back(fmt::format("item-{}", items[row]));
    const bool other = static_cast<int>(items[row] * 37 % 100) < others_percent;
    std::ranges::copy((other ? others : vectors).view()[items[row]],
                      dataset->vectors.MutableRow(row));
  }
  dataset->ids = MakeIds(ids);
  return dataset;
}

TEST(OverlapTest, LooksAtASampleOfTheSameIdsInLargeGenerations) {
  constexpr std::size_t kRowCount = 60;  // so few that each is an item of the sample
  constexpr std::uint64_t kStep = 3;
  std::vector<std::size_t> items(kRowCount);
  std::iota(items.begin(), items.end(), 0);
  std::shared_ptr<FakeSegment> segment;
  const Snapshot served = MakeSnapshot(MakeDataset(items, 0), &segment);
  std::ranges::reverse(items);
  Snapshot next = MakeSnapshot(MakeDataset(items, 20));
  auto searchable = std::make_shared<RowMask>(kRowCount);
  searchable->Allow(3);
  searchable->Invert();
  next.searchable = searchable;
  double sum = 0;
  double count = 0;
  for (Row row = 0; row < kRowCount; ++row) {
    if (!next.searchable->Allows(kRowCount - 1 - row)) continue;
    const auto former = FindNearestInSample(served, row, kStep);
    const auto now = FindNearestInSample(next, kRowCount - 1 - row, kStep);
    ASSERT_EQ(former.size(), 10U);
    const auto kept =
        std::ranges::count_if(former, [&](const auto& id) { return now.contains(id); });
    sum += static_cast<double>(kept) / 10;
    ++count;
  }
  const auto overlap = MeasureOverlap(served, next, kRowCount / kStep);
  ASSERT_TRUE(overlap.ok()) << overlap.status();
  EXPECT_EQ(overlap->items, kRowCount - 1);
  EXPECT_DOUBLE_EQ(overlap->share, sum / count);
  EXPECT_GT(overlap->share, 0.2);
  EXPECT_LT(overlap->share, 0.95);
  EXPECT_TRUE(segment->passes().empty()) << "the index would look at all rows";
  EXPECT_TRUE(MeasureOverlap(served, next, kRowCount).ok());
  EXPECT_EQ(segment->passes().size(), 1U);
}

TEST(OverlapTest, OfASampleIsAboutThatOfAllRows) {
  std::vector<std::size_t> items(4'000);
  std::iota(items.begin(), items.end(), 0);
  const Snapshot served = MakeSnapshot(MakeDataset(items, 0));
  items.resize(5'000);
  std::iota(items.begin(), items.end(), 0);
  for (const int percent : {0, 10, 50}) {
    const Snapshot next = MakeSnapshot(MakeDataset(items, percent));
    const double whole = MeasureOverlap(served, next)->share;
    EXPECT_NEAR(MeasureOverlap(served, next, 1'000)->share, whole, 0.1) << percent;
    std::printf("%d %% of the vectors changed: overlap %.3f, of a sample %.3f\n", percent, whole,
                MeasureOverlap(served, next, 1'000)->share);
  }
}

// Of two served rows none is in a sample of one id in 5,000.
TEST(OverlapTest, ComparesNothingWhereTheSampleHasNoServedRow) {
  std::vector<std::size_t> items(2);
  std::iota(items.begin(), items.end(), 0);
  const Snapshot served = MakeSnapshot(MakeDataset(items, 0));
  items.resize(5'000);
  std::iota(items.begin(), items.end(), 0);
  const auto overlap = MeasureOverlap(served, MakeSnapshot(MakeDataset(items, 100)), 1);
  ASSERT_TRUE(overlap.ok()) << overlap.status();
  EXPECT_EQ(overlap->items, 0U);
  EXPECT_FALSE(CheckOverlap(*overlap, 0.01).ok());
}

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
  const data::Matrix rows = MakeMatrix({{1, 0}, {0, 1}});
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
      MakeMatrix(std::vector<std::vector<float>>(40, std::vector<float>{0.6F, 0.8F}));
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
