#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "certificate/top_k.h"
#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Finds the best k groups of a query from exact rankings of rows. The first ranking is over all
// rows that pass. Each further ranking is over the rows that belong to a group not seen yet, until
// there are k groups or no more rows. The first row of a group in a ranking is the group's best
// row, and no group missing from a ranking is better than a group in it. Finally, groups with too
// few rows in the rankings get their remaining rows.
class GroupHits {
 public:
  //   snapshot  borrowed
  GroupHits(const ResolvedQuery& query, const Snapshot& snapshot);

  // The length of the first ranking.
  static std::uint32_t FirstRowsWanted(const ResolvedQuery& query);
  // The length of the next ranking, and the rows that may be in it (null: all).
  std::uint32_t rows_wanted() const { return rows_wanted_; }
  const RowMask* mask() const { return own_mask_ ? &*own_mask_ : query_.mask.get(); }

  enum class Next : std::uint8_t {
    kWork,     // another piece
    kRanking,  // the next ranking
    // All rows that mask() lets pass: each row offered, or all rows ranked in the query's order.
    kRows,
    kDone,
  };
  // Does one piece of the work after a ranking, some milliseconds. Returns the next step.
  //   hits  the ranking; fewer than rows_wanted() when no more rows pass. Not read after kRows when
  //         rows were offered.
  // Throws std::bad_alloc.
  Next Work(std::span<const Hit> hits);
  // Takes one of the rows for kRows, with its score. Rows may come in any order.
  void Offer(RankKey key);
  // The best k groups, best first. REQUIRES: Work returned kDone; once.
  std::vector<HitGroup> TakeGroups() { return std::move(answer_); }

 private:
  enum class Stage : std::uint8_t { kReading, kMaskingOthers, kMaskingRows, kCompleting, kNaming };
  struct Group {
    std::uint32_t number = 0;  // in the field
    std::vector<Hit> hits;
    bool complete = false;  // it has group_size_ rows, or no further rows pass
    // The best of the offered rows.
    std::vector<RankKey> best_buffer;
    certificate::TopK best;
  };

  // Calls do_one(i), which returns its nanoseconds, for the next i of [0, count), for one piece of
  // work. Returns whether the last i was done.
  template <class DoOne>
  bool DoSome(std::size_t count, DoOne do_one);
  void Read(const Hit& hit);
  void EndReading(std::size_t hit_count);
  // Adds the rows of a group to own_mask_. Returns the estimated nanoseconds.
  std::uint64_t AddRows(std::uint32_t group);
  void EndMask();
  std::uint64_t BeginCompleting(Group& group);
  bool CompleteSome(std::span<const Hit> hits);
  std::uint64_t Name(Group& group);
  void Add(const Hit& hit, Group& group) const;

  const ResolvedQuery& query_;
  const Snapshot& snapshot_;
  const filter::GroupField& field_;
  const std::size_t k_;
  const std::size_t group_size_;
  Stage stage_ = Stage::kReading;
  std::size_t position_ = 0;                                 // the next index of DoSome
  std::vector<Group> groups_;                                // in the order of their best rows
  std::unordered_map<std::uint32_t, std::size_t> index_of_;  // in groups_, by number
  std::size_t first_new_ = 0;           // in groups_, of the groups from the current ranking
  std::size_t incomplete_ = 0;          // groups that are being completed by a ranking
  std::uint32_t rows_wanted_ = 0;       // of the current ranking
  std::vector<std::uint32_t> numbers_;  // of the groups of the current row
  std::optional<RowMask> own_mask_;     // the mask of the ranking under way
  std::vector<HitGroup> answer_;
};

}  // namespace simile::engine
