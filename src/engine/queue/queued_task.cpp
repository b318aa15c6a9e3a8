#include "engine/queue/queued_task.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "engine/search/group_hits.h"
#include "engine/search/ranking.h"
#include "engine/search/row_places.h"

namespace simile::engine {
namespace {

// The estimated time of a row that a cold start visits.
constexpr double kOrderedRowMs = 1e-5;

// The most rows that a cold start visits. It reads rows in order until it has k; with a filter or
// groups it may read all rows.
std::size_t VisitsMax(const ResolvedQuery& query, const Snapshot& snapshot) {
  const std::size_t all = snapshot.row_count();
  if (query.mask != nullptr || query.grouping) return all;
  return std::min(all, query.k + query.excluded().size());
}

// The share of an object's bytes that one of its holders counts.
template <class Shared>
std::uint64_t DivideBytes(std::uint64_t bytes, const std::shared_ptr<Shared>& shared) {
  return bytes / static_cast<std::uint64_t>(std::max(1L, shared.use_count()));
}

std::uint64_t BytesOfShare(const std::shared_ptr<const RowMask>& mask) {
  return mask == nullptr ? 0 : DivideBytes(mask->bytes(), mask);
}

std::uint64_t BytesOfShare(const std::shared_ptr<const std::vector<Row>>& rows) {
  return rows == nullptr ? 0 : DivideBytes(rows->capacity() * sizeof(Row), rows);
}

// The least sufficient batch of the segments; no limit when none was measured.
std::uint32_t SufficientBatch(const Snapshot& snapshot) {
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (const auto& segment : snapshot.segments) {
    const std::uint32_t wanted = segment->sufficient_batch();
    if (wanted > 0) least = std::min(least, wanted);
  }
  return least;
}

}  // namespace

bool IsHard(const SearchTask& task) {
  return !std::ranges::all_of(task.queries, &ResolvedQuery::IsPlain);
}

Lane ChooseLane(const SearchTask& task) {
  if (task.priority == Priority::kBulk) return Lane::kBulk;
  return IsHard(task) ? Lane::kHard : Lane::kPlain;
}

std::uint32_t CountSearches(const SearchTask& task) {
  return static_cast<std::uint32_t>(std::max(task.queries.size(), task.vectors.row_count()));
}

std::uint32_t FindListLength(const SearchTask& task) {
  std::uint32_t longest = 0;
  for (const ResolvedQuery& query : task.queries) {
    std::uint32_t rows = query.k;
    if (query.diversity) rows = query.diversity->candidates;
    if (query.grouping) rows = GroupHits::FirstRowsWanted(query);
    longest = std::max(longest, Ranking::FirstListLength(query.scoring, rows));
  }
  return longest;
}

double WorkMs(const SearchTask& task, const CostEstimator& estimator) {
  const auto dim = static_cast<double>(task.snapshot->dim());
  double products = 0;
  double ordered_rows = 0;
  for (const ResolvedQuery& query : task.queries) {
    if (query.order) ordered_rows += static_cast<double>(VisitsMax(query, *task.snapshot));
    if (query.diversity) products += dim * query.diversity->candidates * query.k;
    if (query.explained.empty()) continue;
    const auto rows = static_cast<double>(task.snapshot->row_count());
    (query.order ? ordered_rows : products) += query.order ? rows : dim * rows * query.vector_count;
  }
  return estimator.ScoresMs(products) + ordered_rows * kOrderedRowMs;
}

std::uint64_t SumBytes(const SearchTask& task) {
  std::uint64_t bytes = sizeof(SearchTask) + task.vectors.bytes() + task.request_bytes;
  for (const ResolvedQuery& query : task.queries) {
    bytes += sizeof(ResolvedQuery) + query.excluded_rows.capacity() * sizeof(Row) +
             query.explained.capacity() * sizeof(Row) + query.weights.capacity() * sizeof(float);
    bytes += PlaceFinder::GroupBytes(query);
    bytes += BytesOfShare(query.mask) + BytesOfShare(query.existing) +
             BytesOfShare(query.shared_excluded_rows);
  }
  return bytes;
}

CostEstimator::Shape MakeShape(const Snapshot& snapshot, std::uint32_t k) {
  return {.snapshot = &snapshot,
          .values = std::uint64_t{snapshot.row_count()} * snapshot.dim(),
          .k_class = CostEstimator::ToKClass(k, snapshot.row_count()),
          .can_pause = std::ranges::all_of(snapshot.segments,
                                           [](const auto& segment) { return segment->CanPause(); }),
          .pass_searches_max = SufficientBatch(snapshot)};
}

Schedule::Request MakeRequest(const SearchTask& task, const CostEstimator& estimator) {
  const bool hard = IsHard(task);
  return {.lane = ChooseLane(task),
          .hard = hard,
          .shape = MakeShape(*task.snapshot, FindListLength(task)),
          .searches = CountSearches(task),
          .work_ms = hard ? WorkMs(task, estimator) : 0};
}

}  // namespace simile::engine
