#include "backend/cpu/row_order_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "backend/segments.h"
#include "certificate/seeded_random.h"

namespace simile::backend::cpu {
namespace {

using tests::SeededRandom;
using tests::UnitRows;

constexpr std::uint64_t kSeed = 64;

// Some rows are candidates of every query, some of none.
std::vector<std::vector<Candidate>> DrawCandidates(std::size_t query_count, std::size_t row_count,
                                                   std::size_t share, SeededRandom& random) {
  std::vector<std::vector<Candidate>> candidates(query_count);
  for (auto& of_query : candidates) {
    for (std::uint32_t index = 0; index < row_count; ++index) {
      if (index % 64 != 0 && !random.OneIn(share)) continue;
      // A known score is left alone, whatever it is.
      of_query.push_back({index, -3, random.OneIn(8) ? -3.0F : 3.0F});
    }
    for (std::size_t i = of_query.size(); i > 1; --i)
      std::swap(of_query[i - 1], of_query[random.Below(i)]);
  }
  return candidates;
}

// Counts what it scores and, of one thread, lists the rows in turn. One at a time.
std::atomic<std::size_t> scored;
std::vector<const float*> rows_read;
bool lists_rows = false;
const certificate::CanonicalKernel& Fastest() {
  return *certificate::SupportedCanonicalKernels().front();
}
constexpr auto kCountScattered = [](const float* const* rows, std::size_t row_count,
                                    const float* query, std::size_t padded_dim, float* scores) {
  scored += row_count;
  if (lists_rows && (rows_read.empty() || rows_read.back() != query)) rows_read.push_back(query);
  Fastest().score_scattered(rows, row_count, query, padded_dim, scores);
};

void ExpectReferenceScores(std::size_t row_count, std::size_t query_count, std::size_t dim,
                           std::size_t share, unsigned threads, SeededRandom& random) {
  const auto rows = UnitRows(row_count, dim, random);
  const auto vectors = UnitRows(query_count, dim, random);
  auto candidates = DrawCandidates(query_count, row_count, share, random);
  const auto drawn = candidates;
  std::vector<RowOrderScorer::Query> queries;
  std::size_t all = 0;
  for (std::size_t query = 0; query < query_count; ++query) {
    queries.push_back({vectors->view().PaddedRow(query), candidates[query]});
    all += candidates[query].size();
  }
  ThreadPool pool(threads);
  RowOrderScorer scorer;
  scorer.Reserve(all, threads);
  scored = 0;
  rows_read.clear();
  lists_rows = threads == 1;
  scorer.Begin(rows->view(), queries);
  scorer.Advance(pool, {"counted", nullptr, kCountScattered}, WholeTurn());

  std::size_t unknown_of_all = 0;
  std::set<std::uint32_t> wanted;
  for (std::size_t query = 0; query < query_count; ++query) {
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < drawn[query].size(); ++i) {
      const Candidate& before = drawn[query][i];
      const Candidate& after = candidates[query][i];
      ASSERT_EQ(after.index, before.index);
      const float expected = before.known()
                                 ? before.lower
                                 : certificate::CanonicalScoreReference(vectors->view()[query],
                                                                        rows->view()[after.index]);
      ASSERT_TRUE(after.lower == expected && after.upper == expected)
          << row_count << " rows, query " << query << ", row " << after.index;
      unknown += before.known() ? 0 : 1;
      if (!before.known()) wanted.insert(before.index);
    }
    EXPECT_EQ(queries[query].scored, unknown);
    unknown_of_all += unknown;
  }
  EXPECT_EQ(scored, unknown_of_all) << "each once";
  if (threads > 1) return;
  EXPECT_EQ(rows_read.size(), wanted.size()) << "each row once";
  EXPECT_TRUE(std::ranges::is_sorted(rows_read));
}

TEST(RowOrderScorerTest, FormsTheReferencesScores) {
  SeededRandom random(kSeed);
  for (int round = 0; round < 100; ++round) {
    const std::size_t row_count = random.Between(1, random.OneIn(8) ? 9'000 : 300);
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    ExpectReferenceScores(row_count, random.Between(1, 40), random.Between(1, 70),
                          random.Between(1, 20), static_cast<unsigned>(random.Between(1, 4)),
                          random);
  }
}

// Ranges of more rows than one step of the sort tells apart.
TEST(RowOrderScorerTest, SortsRangesOfManyRows) {
  SeededRandom random(kSeed);
  ExpectReferenceScores(300'000, 5, 2, 9, 1, random);
  ExpectReferenceScores(300'000, 5, 2, 9, 2, random);
}

TEST(RowOrderScorerTest, HasNothingToDoWhereAllScoresAreKnown) {
  SeededRandom random(kSeed);
  const auto rows = UnitRows(10, 8, random);
  std::vector<Candidate> known{{3, 1, 1}};
  std::vector<RowOrderScorer::Query> queries{{rows->view().PaddedRow(0), known, 7}, {}};
  ThreadPool pool(2);
  RowOrderScorer scorer;
  scorer.Reserve(1, 2);
  scorer.Begin(rows->view(), queries);
  scorer.Advance(pool, Fastest(), WholeTurn());
  EXPECT_EQ(queries[0].scored, 0U);
  EXPECT_EQ(known[0].lower, 1);
}

}  // namespace
}  // namespace simile::backend::cpu
