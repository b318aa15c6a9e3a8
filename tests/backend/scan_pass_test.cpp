#include "backend/cpu/scan_pass.h"

#include <gtest/gtest.h>

#include <vector>

namespace simile::backend::cpu {
namespace {

TEST(ScanPlanTest, CoversAllRowsAndQueriesForEveryShape) {
  for (const std::size_t rows : {1U, 15U, 16U, 17U, 1'000U, 62'423U}) {
    for (const std::size_t queries : {1U, 2U, 3U, 4U, 100U, 1'024U}) {
      for (const std::size_t padded_dim : {32U, 384U, 4'096U}) {
        for (const unsigned threads : {1U, 2U, 64U}) {
          const ScanPlan plan = PlanScan(rows, queries, padded_dim, threads);
          SCOPED_TRACE(::testing::Message() << rows << " x " << padded_dim << ", " << queries
                                            << " queries, " << threads << " threads");
          EXPECT_GE(plan.block_rows * plan.block_count, rows);
          EXPECT_LT(plan.block_rows * (plan.block_count - 1), rows);
          EXPECT_GE(plan.group_queries * plan.group_count, queries);
          EXPECT_LT(plan.group_queries * (plan.group_count - 1), queries);
          EXPECT_GE(plan.threads, 1U);
          EXPECT_LE(plan.threads, threads);
        }
      }
    }
  }
}

TEST(ScanPlanTest, SplitsQueriesWhereRowsAreTooFewForTheThreads) {
  const ScanPlan plan = PlanScan(100, 1'000, 384, 16);
  EXPECT_GE(plan.piece_count(), 16U);
  EXPECT_GT(plan.group_count, 1U);
}

TEST(ScanPlanTest, UsesOneThreadForLittleWork) {
  EXPECT_EQ(PlanScan(100, 1, 384, 8).threads, 1U);
  EXPECT_EQ(PlanScan(2'700, 1, 384, 8).threads, 1U);
  EXPECT_EQ(PlanScan(100'000, 1, 384, 8).threads, 8U);
}

TEST(ScanPlanTest, BoundsThePassByTheMemoryOfItsHits) {
  std::vector<QuerySpec> specs(1'024);
  EXPECT_EQ(QueriesOfOnePass(specs, 1'000'000, 16), specs.size());
  for (QuerySpec& spec : specs) spec.k = 10'000;
  // 20,000 keys of 8 bytes for each of 16 threads: 2.56 MB a query.
  EXPECT_EQ(QueriesOfOnePass(specs, 1'000'000, 16), (256U << 20) / (20'000U * 8 * 16));
  // One query always fits.
  EXPECT_EQ(QueriesOfOnePass(specs, 1'000'000, 4'000), 1U);
}

}  // namespace
}  // namespace simile::backend::cpu
