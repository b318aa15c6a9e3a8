#include "conformance/conformance_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "certificate/canonical_score.h"
#include "certificate/seeded_random.h"

namespace simile::conformance {
namespace {

// In double, every product is exact and only the sum rounds, by less than dim * 2^-53 of the
// lengths: negligible beside the canonical bound it is compared with.
double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
double Norm(std::span<const float> vector) { return std::sqrt(Dot(vector, vector)); }

void ExpectSameHits(const ConformanceCase& drawn, std::size_t query, std::span<const Hit> actual) {
  const std::vector<Hit> expected = OracleHits(drawn, query);
  ASSERT_EQ(actual.size(), expected.size()) << drawn.description << ", query " << query;
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_TRUE(actual[rank].row == expected[rank].row &&
                std::bit_cast<std::uint32_t>(actual[rank].score) ==
                    std::bit_cast<std::uint32_t>(expected[rank].score))
        << drawn.description << ", query " << query << ", rank " << rank << ": row "
        << actual[rank].row << " with " << actual[rank].score << " instead of row "
        << expected[rank].row << " with " << expected[rank].score;
  }
}

// What users are promised, independent of the summation order: no better row was left out.
void ExpectNothingBetterLeftOut(const ConformanceCase& drawn, std::size_t query,
                                std::span<const Hit> hits) {
  if (hits.size() < drawn.specs[query].k) return;  // then every passing row was returned
  const MatrixView rows = drawn.rows->view();
  const std::span<const float> vector = drawn.queries->view()[query];
  const double query_norm = Norm(vector);
  const auto error = [&](Row row) {
    return certificate::CanonicalScoreError(rows.dim(), Norm(rows[row - drawn.first_row]),
                                            query_norm);
  };
  const Row kth = hits.back().row;
  const double kth_exact = Dot(rows[kth - drawn.first_row], vector);
  const double kth_error = error(kth);
  std::vector<bool> returned(rows.row_count(), false);
  for (const Hit& hit : hits) returned[hit.row - drawn.first_row] = true;
  for (std::size_t i = 0; i < rows.row_count(); ++i) {
    if (returned[i]) continue;
    const double exact = Dot(rows[i], vector);
    if (exact <= kth_exact) continue;
    const Row row = drawn.first_row + static_cast<Row>(i);
    if (!drawn.Passes(query, row, certificate::CanonicalScoreReference(rows[i], vector))) continue;
    ASSERT_LE(exact - kth_exact, error(row) + kth_error)
        << drawn.description << ", query " << query << ": row " << row << " was left out for row "
        << kth;
  }
}

// Turns that end after every piece, or after some, as drawn, with all threads or with one idle.
class DrawnTurn final : public Turn {
 public:
  //   one_in  1: after every piece
  DrawnTurn(std::uint64_t seed, std::uint64_t one_in) : seed_(seed), one_in_(one_in) {}
  bool IsOver() const override {
    const std::uint64_t look = looks_.fetch_add(1, std::memory_order_relaxed);
    return tests::SeededRandom(seed_ + look).Below(one_in_) == 0;
  }
  bool LeavesOneThread() const override { return looks_.load(std::memory_order_relaxed) % 2 == 0; }

 private:
  const std::uint64_t seed_;
  const std::uint64_t one_in_;
  mutable std::atomic<std::uint64_t> looks_{0};
};

// Two searches that are paused by turns, and a third that is given up, have the same answers.
void ExpectSameWhenPaused(const ConformanceCase& drawn, const SegmentIndex& index,
                          const SearchResult& whole, EngineTally& tally) {
  tests::SeededRandom random(drawn.seed);
  std::array<SearchResult, 3> results;
  std::vector<std::unique_ptr<SearchPass>> passes;
  for (SearchResult& result : results) {
    auto begun = index.Begin(drawn.Batch(), result);
    ASSERT_TRUE(begun.ok()) << drawn.description << ": " << begun.status().ToString();
    passes.push_back(*std::move(begun));
  }
  const DrawnTurn turn(drawn.seed, random.OneIn(2) ? 1 : random.Between(1, 20));
  ASSERT_TRUE(passes.back()->Advance(turn).ok());
  passes.pop_back();
  for (std::size_t left = passes.size(); left > 0;) {
    std::unique_ptr<SearchPass>& pass = passes[random.Below(passes.size())];
    if (pass == nullptr) continue;
    const absl::StatusOr<bool> done = pass->Advance(turn);
    ASSERT_TRUE(done.ok()) << drawn.description << ": " << done.status().ToString();
    if (!*done) {
      tally.CountPause();
      continue;
    }
    pass.reset();
    --left;
  }
  for (std::size_t i = 0; i < passes.size(); ++i) {
    for (std::size_t query = 0; query < drawn.specs.size(); ++query) {
      ASSERT_TRUE(std::ranges::equal(results[i].Hits(query), whole.Hits(query)))
          << drawn.description << ", query " << query << ", paused";
      // The pass is gone: an engine's name lives as long as the backend.
      const std::string_view engine = results[i].Engine(query);
      ASSERT_EQ(engine.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), engine.npos)
          << drawn.description << ", query " << query << ", paused: " << engine;
    }
  }
}

}  // namespace

std::vector<Hit> OracleHits(const ConformanceCase& drawn, std::size_t query) {
  const MatrixView rows = drawn.rows->view();
  std::vector<Hit> hits;
  for (std::size_t i = 0; i < rows.row_count(); ++i) {
    const Row row = drawn.first_row + static_cast<Row>(i);
    const float score = certificate::CanonicalScoreReference(rows[i], drawn.queries->view()[query]);
    if (drawn.Passes(query, row, score)) hits.push_back({row, score});
  }
  std::ranges::sort(hits, std::greater<>(), ToRankKey);
  if (hits.size() > drawn.specs[query].k) hits.resize(drawn.specs[query].k);
  return hits;
}

void ExpectOracleAnswers(const ConformanceCase& drawn, const SearchResult& result) {
  ASSERT_EQ(result.batch(), drawn.specs.size()) << drawn.description;
  for (std::size_t query = 0; query < drawn.specs.size(); ++query) {
    ExpectSameHits(drawn, query, result.Hits(query));
    if (::testing::Test::HasFatalFailure()) return;
    ExpectNothingBetterLeftOut(drawn, query, result.Hits(query));
    if (::testing::Test::HasFatalFailure()) return;
    const QueryCost& cost = result.Cost(query);
    // The most by the GPU: int8 rows with a score that is reached, fp16 rows, canonical scores.
    ASSERT_LE(cost.rescans, 3U) << drawn.description;
    ASSERT_LE(cost.rows_rescored, (1 + cost.rescans) * drawn.rows->row_count())
        << drawn.description;
  }
}

void ExpectReferenceScores(const ConformanceCase& drawn, const SegmentIndex& index) {
  constexpr std::size_t kRowsMax = 24;
  tests::SeededRandom random(drawn.seed);
  std::vector<Row> wanted;
  for (std::size_t row = random.Below(drawn.rows->row_count());
       row < drawn.rows->row_count() && wanted.size() < kRowsMax;
       row += random.OneIn(3) ? random.Between(2, 200) : 1) {
    wanted.push_back(drawn.first_row + static_cast<Row>(row));
  }
  const MatrixView queries = drawn.queries->view();
  std::vector<float> scores(queries.row_count() * wanted.size());
  const absl::StatusOr<FallbackBackend> scored = index.Score(queries, wanted, scores, nullptr);
  ASSERT_TRUE(scored.ok()) << drawn.description << ": " << scored.status().ToString();
  for (std::size_t query = 0; query < queries.row_count(); ++query) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const float expected = certificate::CanonicalScoreReference(
          queries[query], drawn.rows->view()[wanted[i] - drawn.first_row]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(scores[query * wanted.size() + i]),
                std::bit_cast<std::uint32_t>(expected))
          << drawn.description << ", query " << query << ", row " << wanted[i];
    }
  }
}

void EngineTally::Count(const SearchResult& result) {
  for (std::size_t query = 0; query < result.batch(); ++query) {
    const std::string engine = result.Engine(query);
    if (engine.empty()) continue;  // no row passes
    ++queries_[engine];
    rescans_ += result.Cost(query).rescans;
  }
}

std::uint64_t EngineTally::StartingWith(std::string_view prefix) const {
  std::uint64_t count = 0;
  for (const auto& [engine, queries] : queries_) {
    if (engine.starts_with(prefix)) count += queries;
  }
  return count;
}

void ExpectConforms(Backend& backend, std::uint64_t seed, SearchResult& result,
                    EngineTally& tally) {
  const ConformanceCase drawn = MakeCase(seed);
  const auto index = backend.MakeResident(drawn.Segment());
  ASSERT_TRUE(index.ok()) << drawn.description << ": " << index.status().ToString();
  ASSERT_EQ((*index)->row_count(), drawn.rows->row_count()) << drawn.description;
  ASSERT_EQ((*index)->dim(), drawn.rows->dim()) << drawn.description;
  const absl::Status status = (*index)->Search(drawn.Batch(), result);
  ASSERT_TRUE(status.ok()) << drawn.description << ": " << status.ToString();
  ExpectOracleAnswers(drawn, result);
  if (::testing::Test::HasFatalFailure()) return;
  tally.Count(result);
  ExpectSameWhenPaused(drawn, **index, result, tally);
  if (::testing::Test::HasFatalFailure()) return;
  ExpectReferenceScores(drawn, **index);
}

}  // namespace simile::conformance
