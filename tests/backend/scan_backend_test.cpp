#include "backend/cpu/scan_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "certificate/padded_rows.h"
#include "certificate/seeded_random.h"

namespace simile::backend::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::PaddedRows;

std::unique_ptr<Backend> Scan(unsigned threads) {
  return MakeScanBackend(*certificate::SupportedCanonicalKernels().front(), threads);
}

// Row i scores i against the query (1, 0).
std::shared_ptr<PaddedRows> Ramp(std::size_t row_count) {
  auto rows = std::make_shared<PaddedRows>(row_count, 2);
  for (std::size_t i = 0; i < row_count; ++i) {
    (*rows)[i][0] = static_cast<float>(i);
    (*rows)[i][1] = 1;
  }
  return rows;
}

std::vector<Row> ToRows(std::span<const Hit> hits) {
  std::vector<Row> rows;
  for (const Hit& hit : hits) rows.push_back(hit.row);
  return rows;
}

class ScanBackendTest : public ::testing::Test {
 protected:
  // Answers one query (1, 0) against a ramp of rows.
  std::vector<Row> Search(std::size_t row_count, const QuerySpec& spec, Row first_row = 0) {
    const auto rows = Ramp(row_count);
    const auto index = backend_->MakeResident({rows->view(), rows, Metric::kDot, first_row});
    EXPECT_TRUE(index.ok());
    PaddedRows query(1, 2);
    query[0][0] = 1;
    EXPECT_TRUE((*index)->Search({query.view(), {&spec, 1}}, result_).ok());
    return ToRows(result_.Hits(0));
  }

  std::unique_ptr<Backend> backend_ = Scan(2);
  SearchResult result_;
};

TEST_F(ScanBackendTest, SaysWhatItIs) {
  EXPECT_EQ(backend_->info().name, "cpu");
  EXPECT_THAT(backend_->info().engine, HasSubstr("scan-"));
  EXPECT_THAT(backend_->info().device, HasSubstr(", 2 threads"));
  EXPECT_THAT(Scan(1)->info().device, HasSubstr(", 1 thread"));
}

TEST_F(ScanBackendTest, PlansNothingBesideTheRows) {
  const ResidentPlan plan = backend_->Plan({1'000'000, 384, Metric::kCosine});
  EXPECT_EQ(plan.host_bytes, 0U);
  EXPECT_EQ(plan.device_bytes, 0U);
}

TEST_F(ScanBackendTest, ReturnsTheBestFirst) {
  QuerySpec spec;
  spec.k = 3;
  EXPECT_THAT(Search(100, spec), ElementsAre(99, 98, 97));
  EXPECT_EQ(result_.Hits(0).front().score, 99);
  EXPECT_EQ(result_.Cost(0).rows_scanned, 100U);
  EXPECT_EQ(result_.Cost(0).rows_rescored, 0U);
}

TEST_F(ScanBackendTest, ReturnsTheCallersRowNumbers) {
  QuerySpec spec;
  spec.k = 2;
  const std::vector<Row> excluded{1'049};
  spec.excluded_rows = excluded;
  RowMask mask(1'050);
  mask.Allow(1'049);
  mask.Allow(1'010);
  mask.Allow(1'011);
  spec.mask = &mask;
  EXPECT_THAT(Search(50, spec, 1'000), ElementsAre(1'011, 1'010));
}

TEST_F(ScanBackendTest, ReturnsFewerThanKWhenFewerPass) {
  QuerySpec spec;
  spec.k = 10;
  EXPECT_THAT(Search(3, spec), ElementsAre(2, 1, 0));
  spec.score_threshold = 2;
  EXPECT_THAT(Search(3, spec), ElementsAre(2));
  const RowMask none(3);
  spec.mask = &none;
  EXPECT_THAT(Search(3, spec), ElementsAre());
}

TEST_F(ScanBackendTest, ScoresNoBlockThatTheMaskForbids) {
  constexpr std::size_t kRowCount = 20'000;
  RowMask mask(kRowCount);
  mask.Allow(7);
  QuerySpec spec;
  spec.mask = &mask;
  EXPECT_THAT(Search(kRowCount, spec), ElementsAre(7));
  EXPECT_LT(result_.Cost(0).rows_scanned, 1'000U);
  EXPECT_GE(result_.Cost(0).rows_scanned, 1U);
}

TEST_F(ScanBackendTest, AnswersFromAnEmptySegmentWithNothing) {
  EXPECT_THAT(Search(0, QuerySpec{}), ElementsAre());
}

TEST_F(ScanBackendTest, AnswersAnEmptyBatchWithNothing) {
  const auto rows = Ramp(5);
  const auto index = backend_->MakeResident({rows->view(), rows, Metric::kDot, 0});
  ASSERT_TRUE(index.ok());
  EXPECT_TRUE((*index)->Search({MatrixView(nullptr, 0, 2), {}}, result_).ok());
  EXPECT_EQ(result_.batch(), 0U);
}

TEST_F(ScanBackendTest, KeepsTheRowsAliveThroughTheirOwner) {
  auto rows = Ramp(5);
  const std::weak_ptr<PaddedRows> watch = rows;
  auto index = backend_->MakeResident({rows->view(), rows, Metric::kDot, 0});
  ASSERT_TRUE(index.ok());
  rows.reset();
  EXPECT_FALSE(watch.expired());
  index->reset();
  EXPECT_TRUE(watch.expired());
}

// More queries than one pass may hold: 10,000 hits of 1,024 queries take several.
TEST_F(ScanBackendTest, AnswersABatchThatNeedsSeveralPasses) {
  constexpr std::size_t kRowCount = 17'000;
  constexpr std::size_t kBatch = 1'024;
  const auto backend = Scan(2);
  const auto rows = Ramp(kRowCount);
  const auto index = backend->MakeResident({rows->view(), rows, Metric::kDot, 0});
  ASSERT_TRUE(index.ok());
  PaddedRows queries(kBatch, 2);
  std::vector<QuerySpec> specs(kBatch);
  for (std::size_t q = 0; q < kBatch; ++q) {
    queries[q][0] = q % 2 == 0 ? 1.0F : -1.0F;  // every other query ranks the lowest rows first
    specs[q].k = 10'000;
  }
  ASSERT_TRUE((*index)->Search({queries.view(), specs}, result_).ok());
  for (std::size_t q = 0; q < kBatch; ++q) {
    const std::span<const Hit> hits = result_.Hits(q);
    ASSERT_EQ(hits.size(), 10'000U) << "query " << q;
    for (Row rank = 0; rank < hits.size(); rank += 999) {
      ASSERT_EQ(hits[rank].row, q % 2 == 0 ? kRowCount - 1 - rank : rank) << "query " << q;
    }
    ASSERT_EQ(result_.Cost(q).rows_scanned, kRowCount) << "query " << q;
  }
}

}  // namespace
}  // namespace simile::backend::cpu
