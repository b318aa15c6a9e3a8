#include "engine/search/segment_search.h"

#include <random>

#include <gtest/gtest.h>

#include "certificate/canonical_score.h"
#include "engine/fake_segment.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

using Segments = std::vector<std::shared_ptr<const SegmentIndex>>;

// Rows drawn from a few distinct ones, so that equal scores fall on both sides of every cut.
data::Matrix RowsWithTies(std::size_t row_count, std::size_t dim, std::mt19937_64& random) {
  const data::Matrix distinct = RandomMatrix(1 + random() % 6, dim, random());
  data::Matrix rows = data::Matrix::Create(row_count, dim).value();
  for (std::size_t row = 0; row < row_count; ++row) {
    const float* const source = distinct.view().PaddedRow(random() % distinct.row_count());
    std::copy_n(source, rows.view().padded_dim(), rows.MutableRow(row));
  }
  return rows;
}

Segments Cut(MatrixView rows, const std::vector<std::size_t>& starts) {
  Segments segments;
  for (std::size_t index = 0; index < starts.size(); ++index) {
    const std::size_t end = index + 1 < starts.size() ? starts[index + 1] : rows.row_count();
    segments.push_back(std::make_shared<FakeSegment>(rows.Slice(starts[index], end - starts[index]),
                                                     static_cast<Row>(starts[index])));
  }
  return segments;
}

std::vector<Hit> ToHits(const SearchResult& result, std::size_t query) {
  return {result.Hits(query).begin(), result.Hits(query).end()};
}

TEST(SegmentSearchTest, AnswersAsOneSegmentWhereverTheRowsAreCut) {
  constexpr std::uint64_t kSeed = 20'240'607;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  SegmentSearch search;
  SearchResult whole;
  SearchResult cut;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t row_count = 3 + random() % 40;
    const std::size_t dim = 1 + random() % 40;
    const data::Matrix rows = RowsWithTies(row_count, dim, random);
    const data::Matrix queries = RandomMatrix(1 + random() % 4, dim, random());
    RowMask mask(row_count);
    std::vector<Row> excluded;
    for (Row row = 0; row < row_count; ++row) {
      if (random() % 4 != 0) mask.Allow(row);
      if (random() % 8 == 0) excluded.push_back(row);
    }
    std::vector<QuerySpec> specs(queries.row_count());
    for (QuerySpec& spec : specs) {
      spec.k = static_cast<std::uint32_t>(1 + random() % (row_count + 2));
      if (random() % 2 == 0) spec.mask = &mask;
      if (random() % 2 == 0) spec.excluded_rows = excluded;
      if (random() % 2 == 0) spec.score_threshold = 0;
    }
    const SearchBatch batch{queries.view(), specs};
    const std::size_t first_cut = 1 + random() % (row_count - 2);
    const std::size_t second_cut = first_cut + random() % (row_count - first_cut);
    ASSERT_TRUE(search.Run(Cut(rows.view(), {0}), batch, whole).ok());
    ASSERT_TRUE(search.Run(Cut(rows.view(), {0, first_cut, second_cut}), batch, cut).ok());
    for (std::size_t query = 0; query < specs.size(); ++query) {
      ASSERT_EQ(ToHits(cut, query), ToHits(whole, query)) << "trial " << trial;
    }
  }
}

TEST(SegmentSearchTest, PutsTheLowerRowFirstWhenScoresTieAcrossSegments) {
  const data::Matrix rows = MakeMatrix({{1, 0}, {0, 1}, {1, 0}, {1, 0}});
  const data::Matrix query = MakeMatrix({{1, 0}});
  std::vector<QuerySpec> specs(1);
  specs[0].k = 3;
  // The segment with the higher rows comes first: order must come from the rows alone.
  Segments segments = Cut(rows.view(), {0, 2});
  std::swap(segments[0], segments[1]);
  SegmentSearch search;
  SearchResult result;
  ASSERT_TRUE(search.Run(segments, {query.view(), specs}, result).ok());
  EXPECT_EQ(ToHits(result, 0), (std::vector<Hit>{{0, 1}, {2, 1}, {3, 1}}));
}

TEST(SegmentSearchTest, SumsTheCostsOfTheSegments) {
  const data::Matrix rows = RandomMatrix(7, 3, 1);
  const data::Matrix query = RandomMatrix(1, 3, 2);
  const std::vector<QuerySpec> specs(1);
  SegmentSearch search;
  SearchResult result;
  ASSERT_TRUE(search.Run(Cut(rows.view(), {0, 3}), {query.view(), specs}, result).ok());
  EXPECT_EQ(result.Cost(0).rows_scanned, 7U);
  EXPECT_EQ(result.Cost(0).rows_rescored, 2U);
}

TEST(SegmentSearchTest, HasNoHitsWithoutSegments) {
  const data::Matrix query = RandomMatrix(1, 3, 2);
  const std::vector<QuerySpec> specs(1);
  SegmentSearch search;
  SearchResult result;
  ASSERT_TRUE(search.Run({}, {query.view(), specs}, result).ok());
  EXPECT_EQ(result.batch(), 1U);
  EXPECT_TRUE(result.Hits(0).empty());
}

TEST(SegmentSearchTest, ReturnsTheErrorOfTheSegmentThatFails) {
  const data::Matrix rows = RandomMatrix(4, 3, 1);
  const data::Matrix query = RandomMatrix(1, 3, 2);
  const std::vector<QuerySpec> specs(1);
  Segments segments = Cut(rows.view(), {0});
  auto failing = std::make_shared<FakeSegment>(rows.view().Slice(2, 2), 2);
  failing->status = absl::UnavailableError("the device is lost");
  segments.push_back(failing);
  SegmentSearch search;
  SearchResult result;
  EXPECT_EQ(search.Run(segments, {query.view(), specs}, result), failing->status);
}

TEST(SegmentSearchTest, ScoresRowsOfAllSegmentsWhereverTheyAreCut) {
  const data::Matrix rows = RandomMatrix(40, 9, 3);
  const data::Matrix queries = RandomMatrix(3, 9, 4);
  const std::vector<Row> wanted{0, 1, 7, 8, 9, 20, 21, 38, 39};
  SegmentSearch search;
  std::vector<float> whole(queries.row_count() * wanted.size());
  ASSERT_TRUE(search.Score(Cut(rows.view(), {0}), queries.view(), wanted, whole).ok());
  EXPECT_EQ(whole[wanted.size() + 5],
            certificate::CanonicalScoreReference(queries.view()[1], rows.view()[20]));
  for (const std::vector<std::size_t>& starts :
       {std::vector<std::size_t>{0, 8}, {0, 1, 9, 20, 21}, {0, 10, 20, 30}}) {
    std::vector<float> cut(whole.size(), -2);
    ASSERT_TRUE(search.Score(Cut(rows.view(), starts), queries.view(), wanted, cut).ok());
    EXPECT_EQ(cut, whole);
  }
}

TEST(SegmentSearchTest, AddsTheDeviceTimesOfAllSegments) {
  const data::Matrix rows = RandomMatrix(20, 5, 1);
  const data::Matrix queries = RandomMatrix(1, 5, 2);
  const std::vector<QuerySpec> specs(1);
  const std::vector<Row> scored = {1, 19};
  std::vector<float> scores(scored.size());
  for (const std::vector<std::size_t>& starts : {std::vector<std::size_t>{0}, {0, 7}}) {
    const Segments segments = Cut(rows.view(), starts);
    for (const auto& segment : segments) {
      const_cast<FakeSegment*>(static_cast<const FakeSegment*>(segment.get()))->device_us = 1.5;
    }
    SegmentSearch search;
    SearchResult result;
    DeviceTime time;
    search.set_device_time(&time);
    ASSERT_TRUE(search.Run(segments, {queries.view(), specs}, result).ok());
    EXPECT_EQ(time.microseconds, 1.5 * static_cast<double>(starts.size()));
    ASSERT_TRUE(search.Score(segments, queries.view(), scored, scores).ok());
    EXPECT_EQ(time.microseconds, 3.0 * static_cast<double>(starts.size()));
    search.set_device_time(nullptr);
    ASSERT_TRUE(search.Run(segments, {queries.view(), specs}, result).ok());
    EXPECT_EQ(time.microseconds, 3.0 * static_cast<double>(starts.size()));
  }
}

TEST(SegmentSearchTest, ReturnsTheFallbackBackendOfAnySegment) {
  const data::Matrix rows = RandomMatrix(20, 5, 1);
  const data::Matrix queries = RandomMatrix(1, 5, 2);
  const std::vector<QuerySpec> specs(1);
  const auto fallback =
      std::make_shared<const ServedBy>(ServedBy{{"other", "scan", "a test"}, "it failed"});
  for (const std::vector<std::size_t>& starts : {std::vector<std::size_t>{0}, {0, 7, 11}}) {
    const Segments segments = Cut(rows.view(), starts);
    auto* last = const_cast<FakeSegment*>(static_cast<const FakeSegment*>(segments.back().get()));
    SegmentSearch search;
    SearchResult result;
    ASSERT_TRUE(search.Run(segments, {queries.view(), specs}, result).ok());
    EXPECT_EQ(result.fallback(), nullptr);
    last->spoil = [&](SearchResult& spoilt) { spoilt.SetFallback(fallback); };
    ASSERT_TRUE(search.Run(segments, {queries.view(), specs}, result).ok());
    EXPECT_EQ(result.fallback(), fallback);
    last->spoil = nullptr;
    ASSERT_TRUE(search.Run(segments, {queries.view(), specs}, result).ok());
    EXPECT_EQ(result.fallback(), nullptr);
    const std::vector<Row> scored = {1, 19};
    std::vector<float> scores(scored.size());
    EXPECT_EQ(search.Score(segments, queries.view(), scored, scores).value(), nullptr);
    last->scorer = fallback;
    EXPECT_EQ(search.Score(segments, queries.view(), scored, scores).value(), fallback);
  }
}

}  // namespace
}  // namespace simile::engine
