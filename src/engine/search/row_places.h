#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "certificate/top_k.h"
#include "engine/search/execution.h"
#include "engine/search/resolved_query.h"
#include "engine/search/row_order.h"
#include "engine/search/row_scorer.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Finds the ranks of a query's explained rows among all rows that the query may return. Scores
// every row, so a row that the search missed still counts. Each call of Work does one piece.
// Borrows its arguments; used by one thread.
class PlaceFinder {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   answer     of the query; with diversity in the order of the choice
  //   execution  the cost of scoring is added to it
  // REQUIRES: query.explained is not empty.
  // Throws std::bad_alloc, as do all methods.
  PlaceFinder(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
              std::span<const Hit> answer, SegmentSearch& search, Execution& execution);

  bool done() const { return stage_ == Stage::kDone; }
  // Does one piece, some milliseconds. Errors: the backend's. REQUIRES: not done.
  // Cost of all pieces: a canonical score for each row and vector; with groups a look-up in the
  // payload of each row; with diversity a score for each pair of an explained and a chosen row.
  absl::Status Work();
  // REQUIRES: done; once.
  RowPlaces TakePlaces() { return std::move(places_); }

  // The most bytes that the finder holds for the groups of a query.
  static std::uint64_t GroupBytes(const ResolvedQuery& query);

 private:
  enum class Stage : std::uint8_t {
    kScoringExplained,
    kScoringAll,
    kRankingGroups,
    kOrdering,
    kReading,
    kComparing,
    kDone
  };
  // A group of an explained row.
  struct GroupRef {
    std::size_t row = 0;    // in places_.rows
    std::size_t group = 0;  // in its groups
  };
  // A group by its best row, in the order of an answer: equal best rows by number.
  struct RankedGroup {
    RankKey best;
    std::uint32_t number = 0;
    bool RanksBefore(const RankedGroup& other) const {
      return best != other.best ? best > other.best : number < other.number;
    }
  };
  // A group of an explained row, with the row in it as if the row could be returned.
  struct OwnGroup {
    RankedGroup ranked;
    GroupRef place;
  };

  absl::Status ScoreSome();
  void BeginCounting();
  void Count(RankKey key);
  void CountInGroups(RankKey key);
  void EndCounting();
  void SetScoreNeeded();
  void BeginRankingGroups();
  void RankSomeGroups();
  void CountOwnGroups(RowPlace& place) const;
  void ReadSome();
  void ReadOrdered(Row row);
  bool MayReturn(Row row) const;
  bool IsCandidate(const RowPlace& place) const;
  absl::Status CompareNext();
  // The step of Diversity for a row when the first `before` rows of the answer are chosen.
  absl::StatusOr<DiversityStep> MeasureStep(const Hit& hit, std::size_t before);
  void EndRanking() { stage_ = query_.diversity ? Stage::kComparing : Stage::kDone; }

  const ResolvedQuery& query_;
  const Snapshot& snapshot_;
  const std::span<const Hit> answer_;
  SegmentSearch& search_;
  Execution& execution_;
  RowScorer scorer_;
  Stage stage_ = Stage::kScoringExplained;
  std::size_t position_ = 0;  // in the groups to rank, or in the rows to read
  RowPlaces places_;

  // The explained rows, worst first: the key, and the index in places_.rows.
  std::vector<std::pair<RankKey, std::size_t>> ascending_;
  // [explained + 1] The rows that may be returned and rank between one explained row and the next.
  std::vector<std::uint64_t> between_;
  std::vector<RankKey> best_buffer_;
  certificate::TopK
      best_;  // the rows that the answer reaches, or the best rows of the groups that it reaches

  // With groups: the groups of the explained rows, and the best row of every group.
  std::unordered_map<std::uint32_t, std::vector<GroupRef>> groups_;
  std::vector<RankKey> best_of_group_;  // [numbers of the field]
  std::vector<OwnGroup> own_groups_;    // of the explained rows, best first
  // [own_groups_ + 1] The groups that rank between one of own_groups_ and the one before.
  std::vector<std::uint64_t> groups_between_;
  std::vector<std::uint32_t> numbers_;  // of the groups of the current row

  // For a cold start: all rows in its order, and counts of the rows that were read.
  std::optional<OrderedRows> ordered_;
  std::uint64_t rows_before_ = 0;             // rows read that may be returned
  std::uint64_t groups_before_ = 0;           // groups with a row among these rows
  std::vector<std::uint64_t> rank_of_group_;  // [numbers] from 1; 0: no row of the group was read
  std::vector<std::uint64_t> rows_of_group_;  // [numbers] rows read that may be returned

  std::size_t compared_ = 0;  // places that diversity has compared
};

}  // namespace simile::engine
