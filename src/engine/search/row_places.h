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
// every row, so a row that the search missed still counts. Does one piece a call. Borrows its
// arguments; used by one thread.
class PlaceFinder {
 public:
  //   vectors    [query.vector_count, dim]  the query's own
  //   answer     of the query; with diversity the hits in the order chosen
  //   execution  what scoring costs is added to it
  // REQUIRES: query.explained is not empty.
  // Throws std::bad_alloc, as do all methods.
  PlaceFinder(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
              std::span<const Hit> answer, SegmentSearch& search, Execution& execution);

  bool done() const { return stage_ == Stage::kDone; }
  // One piece, some milliseconds. Errors: the backend's. REQUIRES: not done.
  // Cost of all: a canonical score for each row and vector, a look-up in the payload of each row
  // with groups, and with diversity a score for each explained row and each row chosen.
  absl::Status Work();
  // REQUIRES: done; once.
  RowPlaces TakePlaces() { return std::move(places_); }

  // The most that it holds for a query with groups.
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
  // A group of an explained row, with that row in it as if it could be returned.
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
  std::size_t position_ = 0;  // of the groups that are ranked, or of the rows that are read
  RowPlaces places_;

  // The explained rows, worst first: the key, and the index in places_.rows.
  std::vector<std::pair<RankKey, std::size_t>> ascending_;
  // [explained + 1] The rows that may be returned and rank between one explained row and the next.
  std::vector<std::uint64_t> between_;
  std::vector<RankKey> best_buffer_;
  certificate::TopK
      best_;  // of all rows, or of the best rows of all groups: those that are reached

  // With groups: those of the explained rows, and the best row of every group.
  std::unordered_map<std::uint32_t, std::vector<GroupRef>> groups_;
  std::vector<RankKey> best_of_group_;  // [numbers of the field]
  std::vector<OwnGroup> own_groups_;    // of the explained rows, best first
  // [own_groups_ + 1] The groups that rank between one of own_groups_ and the one before.
  std::vector<std::uint64_t> groups_between_;
  std::vector<std::uint32_t> numbers_;  // of the groups of the row at hand

  // Of a cold start: all rows in its order, and what was read of them.
  std::optional<OrderedRows> ordered_;
  std::uint64_t rows_before_ = 0;             // that may be returned
  std::uint64_t groups_before_ = 0;           // that have a row among these
  std::vector<std::uint64_t> rank_of_group_;  // [numbers] from 1; 0: none of its rows was read
  std::vector<std::uint64_t> rows_of_group_;  // [numbers] that may be returned, of those read

  std::size_t compared_ = 0;  // places that diversity has compared
};

}  // namespace simile::engine
