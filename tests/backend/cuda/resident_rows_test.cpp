#include "backend/cuda/resident_rows.h"

#include <gtest/gtest.h>

namespace simile::backend::cuda {
namespace {

// Counts passes of 32 queries until too_many() is `wanted`; returns how many queries that took.
std::size_t QueriesUntil(bool wanted, std::size_t overflows_of_pass, RecentOverflows& recent) {
  constexpr std::size_t kBatch = 32, kQueriesMax = 100'000;
  std::size_t queries = 0;
  for (; recent.too_many() != wanted && queries < kQueriesMax; queries += kBatch) {
    recent.Count(kBatch, overflows_of_pass);
  }
  return queries;
}

TEST(RecentOverflowsTest, FindsThemTooManyAfterMillionsOfGoodQueries) {
  RecentOverflows recent;
  for (int i = 0; i < 1'000'000; ++i) recent.Count(100, 0);
  EXPECT_FALSE(recent.too_many());
  EXPECT_LE(QueriesUntil(true, 32, recent), 128U);
}

TEST(RecentOverflowsTest, ForgetsABurst) {
  RecentOverflows recent;
  for (int i = 0; i < 1'000'000; ++i) recent.Count(1, 1);
  EXPECT_TRUE(recent.too_many());
  EXPECT_LE(QueriesUntil(false, 0, recent), 20'000U);
  // Where it goes on, the next pass ends the trial.
  EXPECT_LE(QueriesUntil(true, 32, recent), 32U);
}

TEST(RecentOverflowsTest, AllowsOneQueryIn64) {
  RecentOverflows rare, often;
  for (int i = 0; i < 10'000; ++i) {
    rare.Count(64, 1);
    EXPECT_FALSE(rare.too_many()) << i;
    often.Count(64, 2);
  }
  EXPECT_TRUE(often.too_many());
}

TEST(RecentOverflowsTest, WaitsForMoreThanAFew) {
  RecentOverflows recent;
  recent.Count(8, 8);
  EXPECT_FALSE(recent.too_many());
  recent.Count(1, 1);
  EXPECT_TRUE(recent.too_many());
}

}  // namespace
}  // namespace simile::backend::cuda
