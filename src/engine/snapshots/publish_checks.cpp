#include "engine/snapshots/publish_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/stable_hash.h"
#include "certificate/canonical_score.h"
#include "data/matrix.h"
#include "simile/hits.h"
#include "simile/matrix_view.h"
#include "simile/query.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

constexpr int kDrawsMax = 16;  // tries to find one row that is not zeros

// Draws rows to search for, as indexes into the matrix; a row may be drawn twice. Avoids rows of
// zeros when other rows are easily found: a row of zeros scores 0 with all rows, which proves
// little.
// REQUIRES: rows are not empty.
std::vector<std::size_t> DrawRows(MatrixView rows, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> drawn(count);
  std::uniform_int_distribution<std::size_t> any_row(0, rows.row_count() - 1);
  for (std::size_t& row : drawn) {
    for (int draws = 0; draws < kDrawsMax; ++draws) {
      row = any_row(random);
      if (!IsZeroVector(rows[row])) break;
    }
  }
  return drawn;
}

// The chosen rows as a batch of queries. Errors: those of Matrix::Create.
absl::StatusOr<data::Matrix> CopyQueries(MatrixView rows, std::span<const std::size_t> chosen) {
  absl::StatusOr<data::Matrix> queries = data::Matrix::Create(chosen.size(), rows.dim());
  if (!queries.ok()) return queries;
  for (std::size_t query = 0; query < chosen.size(); ++query) {
    std::copy_n(rows.PaddedRow(chosen[query]), rows.padded_dim(), queries->MutableRow(query));
  }
  return queries;
}

constexpr std::size_t kQueryCount = 4;
constexpr std::uint32_t kHitsAsked = 10;
// The most multiply-adds for one query. When scoring every row needs more, a sample of the rows is
// scored.
constexpr std::size_t kProductsPerQuery = 10'000'000;
constexpr std::uint64_t kIndexSeed = 0x51'31'1e'00;

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

  // Checks the hits: each is a row of the segment with the reference's score; they are in rank
  // order and distinct; their number is right.
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
      if (ToRankKey(hit) != key || std::signbit(hit.score) != std::signbit(key.score())) {
        return Wrong(answered, fmt::format("row {} scored {:a}, the reference says {:a}", hit.row,
                                           hit.score, key.score()));
      }
      if (rank > 0 && ToRankKey(hit) >= ToRankKey(answered.hits[rank - 1])) {
        return Wrong(answered,
                     fmt::format("row {} ({:a}) came after row {} ({:a})", hit.row, hit.score,
                                 answered.hits[rank - 1].row, answered.hits[rank - 1].score));
      }
    }
    return absl::OkStatus();
  }

  // Checks that no row of the sample outranks the last hit without being a hit. If the sample has
  // all rows and CheckHits passed, the answer equals the reference's, bit for bit.
  absl::Status CheckOmitted(const Answered& answered, std::span<const std::size_t> sample) const {
    const RankKey last = ToRankKey(answered.hits.back());
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

constexpr std::uint64_t kAnswersSeed = 0xca'4a'21'00;
constexpr std::size_t kScoredRowsMin = 16;
constexpr std::size_t kScoringRows = 16;
constexpr std::size_t kScoredRows = 256;
constexpr std::size_t kItemsCompared = 64;
constexpr std::size_t kItemsDrawn = 16 * kItemsCompared;
constexpr std::uint32_t kNearest = 10;

// Searches all segments for each of some rows. Returns the hits, best first.
//   specs  [rows]
absl::StatusOr<std::vector<std::vector<Hit>>> SearchHits(const Snapshot& snapshot,
                                                         std::span<const std::size_t> rows,
                                                         const std::vector<QuerySpec>& specs) {
  const auto queries = CopyQueries(snapshot.dataset->vectors.view(), rows);
  if (!queries.ok()) return queries.status();
  std::vector<std::vector<Hit>> hits(rows.size());
  for (const auto& segment : snapshot.segments) {
    SearchResult result;
    const absl::Status searched = segment->SearchAside({queries->view(), specs}, result);
    if (!searched.ok()) return searched;
    for (std::size_t query = 0; query < rows.size(); ++query) {
      const auto found = result.Hits(query);
      hits[query].insert(hits[query].end(), found.begin(), found.end());
    }
  }
  for (std::size_t query = 0; query < rows.size(); ++query) {
    std::ranges::sort(hits[query],
                      [](const Hit& a, const Hit& b) { return ToRankKey(a) > ToRankKey(b); });
    hits[query].resize(std::min<std::size_t>(hits[query].size(), specs[query].k));
  }
  return hits;
}

// The only score among all pairs of a sample's rows; nothing when scores differ.
absl::StatusOr<std::optional<float>> FindOnlyScore(const Snapshot& snapshot) {
  const MatrixView rows = snapshot.dataset->vectors.view();
  if (rows.row_count() < kScoredRowsMin) return std::optional<float>();
  std::mt19937_64 random(kAnswersSeed);
  const std::vector<std::size_t> scoring = DrawRows(rows, kScoringRows, random);
  RowMask scored(rows.row_count());
  for (const std::size_t row : DrawRows(rows, kScoredRows, random)) {
    scored.Allow(static_cast<Row>(row));
  }
  // Each row is also scored with itself, because rows that have nothing in common all score 0 with
  // each other.
  for (const std::size_t row : scoring) scored.Allow(static_cast<Row>(row));
  QuerySpec spec;
  spec.k = kScoredRows + kScoringRows;
  spec.mask = &scored;
  const auto hits = SearchHits(snapshot, scoring, std::vector<QuerySpec>(scoring.size(), spec));
  if (!hits.ok()) return hits.status();
  const float first = hits->front().front().score;
  for (const std::vector<Hit>& of_row : *hits) {
    for (const Hit& hit : of_row) {
      if (hit.score != first) return std::optional<float>();
    }
  }
  return std::optional(first);
}

// Items that both generations have, as rows of each.
struct CommonItems {
  std::vector<std::size_t> served;
  std::vector<std::size_t> next;
};

bool IsSearchable(const Snapshot& snapshot, std::size_t row) {
  return snapshot.searchable == nullptr || snapshot.searchable->Allows(static_cast<Row>(row));
}

// Draws up to kItemsCompared items.
CommonItems DrawCommonItems(const Snapshot& served, const Snapshot& next) {
  std::mt19937_64 random(kAnswersSeed);
  std::set<std::size_t> drawn;
  CommonItems items;
  for (const std::size_t row : DrawRows(served.dataset->vectors.view(), kItemsDrawn, random)) {
    if (items.served.size() == kItemsCompared) break;
    if (!drawn.insert(row).second || !IsSearchable(served, row)) continue;
    data::IdIndex::Digits digits;
    const auto same = next.dataset->ids.Find(served.dataset->ids.Id(static_cast<Row>(row), digits));
    if (!same || !IsSearchable(next, *same)) continue;
    items.served.push_back(row);
    items.next.push_back(*same);
  }
  return items;
}

// The nearest rows of each of some rows, without the row itself, best first.
absl::StatusOr<std::vector<std::vector<Hit>>> FindNearestInAll(const Snapshot& snapshot,
                                                               std::span<const std::size_t> rows) {
  const std::vector<Row> own(rows.begin(), rows.end());
  std::vector<QuerySpec> specs(rows.size());
  for (std::size_t query = 0; query < rows.size(); ++query) {
    specs[query].k = kNearest;
    specs[query].mask = snapshot.searchable.get();
    specs[query].excluded_rows = std::span(own).subspan(query, 1);
  }
  return SearchHits(snapshot, rows, specs);
}

// As FindNearestInAll, among one in `step` of the ids, in no order. Does not use the index, which
// would also look at rows outside the sample.
std::vector<std::vector<Hit>> FindNearestInSample(const Snapshot& snapshot,
                                                  std::span<const std::size_t> rows,
                                                  std::uint64_t step) {
  const certificate::CanonicalKernel& kernel = *certificate::SupportedCanonicalKernels().front();
  const MatrixView vectors = snapshot.dataset->vectors.view();
  std::vector<const float*> queries;
  for (const std::size_t row : rows) queries.push_back(vectors.PaddedRow(row));
  std::vector<float> scores(rows.size());
  const auto better = [](const Hit& a, const Hit& b) { return ToRankKey(a) > ToRankKey(b); };
  std::vector<std::vector<Hit>> nearest(rows.size());  // heaps, the worst first
  for (std::size_t row = 0; row < vectors.row_count(); ++row) {
    data::IdIndex::Digits digits;
    const std::string_view id = snapshot.dataset->ids.Id(static_cast<Row>(row), digits);
    if (base::StableHash::Hash64(id) % step != 0 || !IsSearchable(snapshot, row)) continue;
    kernel.score_scattered(queries.data(), queries.size(), vectors.PaddedRow(row),
                           vectors.padded_dim(), scores.data());
    for (std::size_t query = 0; query < rows.size(); ++query) {
      if (rows[query] == row) continue;
      std::vector<Hit>& hits = nearest[query];
      const Hit hit{static_cast<Row>(row), scores[query]};
      if (hits.size() == kNearest) {
        if (!better(hit, hits.front())) continue;
        std::ranges::pop_heap(hits, better);
        hits.pop_back();
      }
      hits.push_back(hit);
      std::ranges::push_heap(hits, better);
    }
  }
  return nearest;
}

// The ids of each row's nearest rows, among one in `step` of the ids, without the row itself.
absl::StatusOr<std::vector<std::set<std::string>>> FindNearest(const Snapshot& snapshot,
                                                               std::span<const std::size_t> rows,
                                                               std::uint64_t step) {
  const auto hits =
      step == 1 ? FindNearestInAll(snapshot, rows) : FindNearestInSample(snapshot, rows, step);
  if (!hits.ok()) return hits.status();
  std::vector<std::set<std::string>> ids(rows.size());
  for (std::size_t query = 0; query < rows.size(); ++query) {
    for (const Hit& hit : (*hits)[query]) {
      data::IdIndex::Digits digits;
      ids[query].emplace(snapshot.dataset->ids.Id(hit.row, digits));
    }
  }
  return ids;
}

// The share of the former nearest ids that are still nearest.
double ShareKept(const std::set<std::string>& former, const std::set<std::string>& now) {
  if (former.empty()) return 1;
  const auto kept =
      std::ranges::count_if(former, [&](const std::string& id) { return now.contains(id); });
  return static_cast<double>(kept) / static_cast<double>(former.size());
}

absl::Status OverlapTooLow(const std::string& found, double minimum) {
  return base::Error(
      base::ErrorReason::kOverlapTooLow,
      fmt::format("min_overlap: {}; at least {:.1f} % must stay. The former snapshot is still "
                  "served. If that much change is intended, reload with a smaller min_overlap; 0 "
                  "accepts any change, even if the setting collections.min_overlap is higher",
                  found, 100 * minimum),
      "min_overlap");
}

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

  std::mt19937_64 random(kIndexSeed);
  const std::vector<std::size_t> query_rows = DrawRows(rows, kQueryCount, random);
  const absl::StatusOr<data::Matrix> queries = CopyQueries(rows, query_rows);
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

absl::Status CheckScoresDiffer(const Snapshot& served, const Snapshot& next) {
  const auto only = FindOnlyScore(next);
  if (!only.ok()) return only.status();
  if (!*only) return absl::OkStatus();
  const auto former = FindOnlyScore(served);
  if (!former.ok()) return former.status();
  if (*former) return absl::OkStatus();
  return base::Error(base::ErrorReason::kAllScoresEqual,
                     fmt::format("of {} rows, every pair in a sample scores {}: answers would be "
                                 "in the order of the rows. The former snapshot is still served. "
                                 "If such vectors are intended, unload the collection and load it",
                                 base::Grouped(next.row_count()), **only),
                     "collection");
}

absl::StatusOr<Overlap> MeasureOverlap(const Snapshot& served, const Snapshot& next,
                                       std::uint64_t rows_max) {
  const CommonItems items = DrawCommonItems(served, next);
  const std::size_t count = items.served.size();
  if (count == 0) return Overlap();
  const std::uint64_t row_count = std::max(served.row_count(), next.row_count());
  const std::uint64_t step = std::max<std::uint64_t>(1, (row_count + rows_max - 1) / rows_max);
  const auto former = FindNearest(served, items.served, step);
  if (!former.ok()) return former.status();
  const auto now = FindNearest(next, items.next, step);
  if (!now.ok()) return now.status();
  Overlap overlap;
  for (std::size_t item = 0; item < count; ++item) {
    // When one snapshot is large, the sample of the small one may have no row.
    if (step > 1 && (*former)[item].empty()) continue;
    ++overlap.items;
    overlap.share += ShareKept((*former)[item], (*now)[item]);
  }
  if (overlap.items > 0) overlap.share /= static_cast<double>(overlap.items);
  return overlap;
}

absl::Status CheckOverlap(const Overlap& overlap, double minimum) {
  if (minimum <= 0) return absl::OkStatus();
  if (overlap.items == 0) {
    return OverlapTooLow("the new snapshot has none of the sampled items, so no answer stays",
                         minimum);
  }
  if (overlap.share >= minimum) return absl::OkStatus();
  return OverlapTooLow(
      fmt::format("of the {} nearest items of {}, {:.1f} % stay as they are", kNearest,
                  base::Counted(overlap.items, "sampled item"), 100 * overlap.share),
      minimum);
}

}  // namespace simile::engine
