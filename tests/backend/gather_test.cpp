#include "backend/cpu/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backend/segments.h"

namespace simile::backend::cpu {
namespace {

using tests::DrawRowMask;
using tests::MakeSegment;
using tests::PaddedRows;
using tests::SeededRandom;
using tests::Specs;
using tests::UnitRows;

const certificate::CanonicalKernel& Kernel() {
  return *certificate::SupportedCanonicalKernels().front();
}

class GatherTest : public ::testing::Test {
 protected:
  // Expects the plain scan's answers to the gathered queries.
  void ExpectTheScansAnswers(const SegmentRows& rows, const SearchBatch& batch,
                             const std::vector<std::uint32_t>& queries, const std::string& what) {
    PrepareResult(batch, rows, scanned_);
    scan_.Begin(rows, batch, scanned_);
    scan_.Advance(pool_, WholeTurn());
    PrepareResult(batch, rows, gathered_);
    gather_.Begin(rows, batch, queries, gathered_);
    gather_.Advance(pool_, WholeTurn());
    for (std::uint32_t query = 0; query < batch.specs.size(); ++query) {
      if (!std::ranges::binary_search(queries, query)) {
        ASSERT_TRUE(gathered_.Hits(query).empty())
            << what << ": query " << query << " was not gathered";
        continue;
      }
      ASSERT_TRUE(std::ranges::equal(gathered_.Hits(query), scanned_.Hits(query)))
          << what << ", query " << query;
      ASSERT_EQ(gathered_.Engine(query), "gather") << what;
    }
  }

  ThreadPool pool_{2};
  ScanSearch scan_{Kernel(), pool_.thread_count(), "scan"};
  Gather gather_{scan_, "gather"};
  SearchResult scanned_;
  SearchResult gathered_;
};

TEST_F(GatherTest, AnswersAsTheScanDoes) {
  constexpr std::uint64_t kSeed = 71;
  SeededRandom random(kSeed);
  for (int round = 0; round < 300; ++round) {
    const std::size_t row_count = random.Between(1, random.OneIn(10) ? 5'000 : 400);
    const std::size_t dim = random.Between(1, 80);
    const Row first_row = random.OneIn(2) ? static_cast<Row>(random.Below(5'000)) : 0;
    const Row end = first_row + static_cast<Row>(row_count);
    const auto rows = UnitRows(row_count, dim, random);
    // Ties: rows that repeat others.
    for (std::size_t r = 0; random.OneIn(2) && r < row_count; ++r) {
      if (random.OneIn(2))
        std::ranges::copy(rows->view()[random.Below(row_count)], (*rows)[r].begin());
    }
    const std::size_t batch = random.Between(1, 20);
    const auto queries = UnitRows(batch, dim, random);
    const RowMask mask =
        DrawRowMask(end, std::vector<std::size_t>{0, 1, 2, 10, 100}[random.Below(5)], random);
    std::vector<QuerySpec> specs = Specs(batch, 1);
    std::vector<std::vector<Row>> excluded(batch);
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t query = 0; query < batch; ++query) {
      QuerySpec& spec = specs[query];
      spec.k = static_cast<std::uint32_t>(random.Between(1, row_count + 5));
      spec.mask = &mask;
      for (Row row = first_row > 0 ? first_row - 1 : 0; row <= end; ++row) {
        if (random.OneIn(4)) excluded[query].push_back(row);
      }
      if (random.OneIn(2)) spec.excluded_rows = excluded[query];
      if (random.OneIn(3)) spec.score_threshold = random.Signed();
      if (random.OneIn(2)) chosen.push_back(query);
    }
    if (chosen.empty()) chosen.push_back(0);
    ExpectTheScansAnswers(MakeSegment(rows, first_row), {queries->view(), specs}, chosen,
                          "seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    if (HasFatalFailure()) return;
    EXPECT_EQ(gathered_.Cost(chosen.front()).rows_scanned, mask.AllowedCount(first_row, end));
  }
}

TEST_F(GatherTest, AnswersNothingWhenNoRowPasses) {
  SeededRandom random(72);
  const auto rows = UnitRows(100, 10, random);
  const RowMask none(100);
  std::vector<QuerySpec> specs = Specs(2, 5);
  for (QuerySpec& spec : specs) spec.mask = &none;
  const auto queries = UnitRows(2, 10, random);
  ExpectTheScansAnswers(MakeSegment(rows), {queries->view(), specs}, {0, 1}, "no row");
  EXPECT_TRUE(gathered_.Hits(0).empty());
  EXPECT_EQ(gathered_.Cost(0).rows_scanned, 0U);
}

TEST_F(GatherTest, BreaksTiesByTheLowerRow) {
  const auto rows = std::make_shared<PaddedRows>(1'000, 3);
  for (std::size_t r = 0; r < 1'000; ++r) (*rows)[r][0] = 1;
  RowMask mask(2'000);
  for (const Row row : {1'999U, 1'500U, 1'007U, 1'700U}) mask.Allow(row);
  std::vector<QuerySpec> specs = Specs(1, 3);
  specs[0].mask = &mask;
  const std::vector<Row> excluded{999, 1'500, 2'000};
  specs[0].excluded_rows = excluded;
  PaddedRows query(1, 3);
  query[0][0] = 1;
  ExpectTheScansAnswers(MakeSegment(rows, 1'000), {query.view(), specs}, {0}, "ties");
  ASSERT_EQ(gathered_.Hits(0).size(), 3U);
  EXPECT_EQ(gathered_.Hits(0)[0].row, 1'007U);
  EXPECT_EQ(gathered_.Hits(0)[2].row, 1'999U);
}

}  // namespace
}  // namespace simile::backend::cpu
