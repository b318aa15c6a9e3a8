#include "engine/snapshots/verify_index.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "certificate/canonical_score.h"
#include "data/matrix.h"
#include "engine/snapshots/sampled_rows.h"
#include "simile/hits.h"
#include "simile/query.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

constexpr std::size_t kQueryCount = 4;
constexpr std::uint32_t kHitsAsked = 10;
// Multiply-adds for one query: when scoring every row needs more, a sample of this many is scored.
constexpr std::size_t kProductsPerQuery = 10'000'000;
constexpr std::uint64_t kSeed = 0x51'31'1e'00;

// The rows that are scored for each query, as indexes into the segment: all, or a sample.
std::vector<std::size_t> ChooseRows(std::size_t row_count, std::size_t dim,
                                    std::mt19937_64& random) {
  const std::size_t count_max = std::max<std::size_t>(1, kProductsPerQuery / dim);
  std::vector<std::size_t> rows(std::min(row_count, count_max));
  std::uniform_int_distribution<std::size_t> any_row(0, row_count - 1);
  for (std::size_t index = 0; index < rows.size(); ++index) {
    rows[index] = row_count <= count_max ? index : any_row(random);
  }
  return rows;
}

// One query and its hits.
struct Answered {
  std::size_t query_row = 0;  // index into the segment
  std::span<const Hit> hits;
};

class Checker {
 public:
  Checker(MatrixView rows, Row first_row) : rows_(rows), first_row_(first_row) {}

  // Every hit is a row of the segment, scored as the reference does, in rank order, none twice; and
  // there are as many as there should be.
  absl::Status CheckHits(const Answered& answered) const {
    const std::size_t expected = std::min<std::size_t>(kHitsAsked, rows_.row_count());
    if (answered.hits.size() != expected) {
      return Wrong(answered, fmt::format("{} came back, {} exist",
                                         base::Counted(answered.hits.size(), "hit"), expected));
    }
    for (std::size_t rank = 0; rank < answered.hits.size(); ++rank) {
      const Hit& hit = answered.hits[rank];
      if (hit.row < first_row_ || hit.row - first_row_ >= rows_.row_count()) {
        return Wrong(answered, fmt::format("hit {} is row {}, which the segment does not hold",
                                           rank + 1, hit.row));
      }
      const RankKey key = ReferenceKey(answered, hit.row - first_row_);
      if (KeyOf(hit) != key || std::signbit(hit.score) != std::signbit(key.score())) {
        return Wrong(answered, fmt::format("row {} scored {:a}, the reference says {:a}", hit.row,
                                           hit.score, key.score()));
      }
      if (rank > 0 && KeyOf(hit) >= KeyOf(answered.hits[rank - 1])) {
        return Wrong(answered,
                     fmt::format("row {} ({:a}) came after row {} ({:a})", hit.row, hit.score,
                                 answered.hits[rank - 1].row, answered.hits[rank - 1].score));
      }
    }
    return absl::OkStatus();
  }

  // No row of the sample outranks the last hit without being among the hits. With all rows in the
  // sample and CheckHits passed, the answer is the reference's answer, bit for bit.
  absl::Status CheckOmitted(const Answered& answered, std::span<const std::size_t> sample) const {
    const RankKey last = KeyOf(answered.hits.back());
    for (const std::size_t index : sample) {
      const RankKey key = ReferenceKey(answered, index);
      if (key <= last) continue;
      const bool found = std::any_of(answered.hits.begin(), answered.hits.end(),
                                     [&](const Hit& hit) { return hit.row == key.row(); });
      if (!found) {
        return Wrong(answered, fmt::format("row {} ({:a}) was left out for row {} ({:a})",
                                           key.row(), key.score(), last.row(), last.score()));
      }
    }
    return absl::OkStatus();
  }

 private:
  RankKey ReferenceKey(const Answered& answered, std::size_t index) const {
    return {certificate::CanonicalScoreReference(rows_[answered.query_row], rows_[index]),
            static_cast<Row>(first_row_ + index)};
  }

  absl::Status Wrong(const Answered& answered, const std::string& what) const {
    return base::Error(
        base::ErrorReason::kInternal,
        fmt::format("the index failed its check and is not published: neighbours of row {}: {}",
                    first_row_ + answered.query_row, what));
  }

  const MatrixView rows_;
  const Row first_row_;
};

}  // namespace

absl::Status VerifyIndex(const SegmentIndex& index, MatrixView rows, Row first_row) {
  if (index.row_count() != rows.row_count() || index.dim() != rows.dim()) {
    return base::Error(
        base::ErrorReason::kInternal,
        fmt::format(
            "the index failed its check and is not published: it holds {} x {}, the data {} x {}",
            index.row_count(), index.dim(), rows.row_count(), rows.dim()));
  }
  if (rows.row_count() == 0) return absl::OkStatus();

  std::mt19937_64 random(kSeed);
  const std::vector<std::size_t> query_rows = DrawRows(rows, kQueryCount, random);
  const absl::StatusOr<data::Matrix> queries = QueriesOf(rows, query_rows);
  if (!queries.ok()) return queries.status();

  QuerySpec spec;
  spec.k = kHitsAsked;
  const std::vector<QuerySpec> specs(kQueryCount, spec);
  SearchResult result;
  if (absl::Status status = index.SearchAside({queries->view(), specs}, result); !status.ok()) {
    return status;
  }
  const std::vector<std::size_t> sample = ChooseRows(rows.row_count(), rows.dim(), random);
  const Checker checker(rows, first_row);
  for (std::size_t query = 0; query < kQueryCount; ++query) {
    const Answered answered{query_rows[query], result.Hits(query)};
    if (absl::Status status = checker.CheckHits(answered); !status.ok()) return status;
    if (absl::Status status = checker.CheckOmitted(answered, sample); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace simile::engine
