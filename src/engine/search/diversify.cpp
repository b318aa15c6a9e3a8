#include "engine/search/diversify.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace simile::engine {
namespace {

struct Candidate {
  Hit hit;
  float nearest_chosen = -std::numeric_limits<float>::infinity();
  bool chosen = false;
};

double Relevance(const Candidate& candidate, double lambda) {
  return lambda * candidate.hit.score - (1.0 - lambda) * candidate.nearest_chosen;
}

}  // namespace

absl::StatusOr<std::vector<Hit>> Diversify(std::span<const Hit> candidates, std::size_t k,
                                           float lambda, const Snapshot& snapshot,
                                           SegmentSearch& search, Execution& execution) {
  std::vector<Hit> chosen;
  if (candidates.empty()) return chosen;
  const std::size_t wanted = std::min(k, candidates.size());
  chosen.reserve(wanted);
  std::vector<Candidate> left;
  left.reserve(candidates.size());
  for (const Hit& hit : candidates) left.push_back({.hit = hit});

  // Score takes rows in ascending order; the candidates are in the order of their scores.
  std::vector<std::size_t> by_row(left.size());
  std::iota(by_row.begin(), by_row.end(), std::size_t{0});
  std::ranges::sort(by_row, {}, [&](std::size_t i) { return left[i].hit.row; });
  std::vector<Row> rows;
  rows.reserve(by_row.size());
  for (const std::size_t i : by_row) rows.push_back(left[i].hit.row);
  std::vector<float> similarities(rows.size());

  std::size_t next = 0;
  for (;;) {
    left[next].chosen = true;
    chosen.push_back(left[next].hit);
    if (chosen.size() == wanted) return chosen;
    const MatrixView newest = snapshot.dataset->vectors.view().Slice(left[next].hit.row, 1);
    const absl::StatusOr<FallbackBackend> fallback =
        search.Score(snapshot.segments, newest, rows, similarities);
    if (!fallback.ok()) return fallback.status();
    execution.AddFallback(*fallback);
    execution.cost.rows_rescored += rows.size();
    for (std::size_t i = 0; i < by_row.size(); ++i) {
      float& nearest = left[by_row[i]].nearest_chosen;
      nearest = std::max(nearest, similarities[i]);
    }
    next = left.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i].chosen) continue;
      if (next == left.size() || Relevance(left[i], lambda) > Relevance(left[next], lambda))
        next = i;
    }
  }
}

}  // namespace simile::engine
