#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "engine/query/query_request.h"
#include "engine/query/resolve.h"
#include "engine/search/resolved_query.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Why an item is not in an answer: the numbers of v1::Explanation::Reason.
enum class Reason : std::uint8_t {
  kNotFound = 1,
  kNotSearchable = 2,
  kFilter = 3,
  kNotAllowed = 4,
  kExcluded = 5,
  kSeen = 6,
  kInQuery = 7,
  kThreshold = 8,
  kRank = 9,
  kOffset = 10,
  kDiversity = 11,
  kNoGroup = 12,
  kGroupRank = 13,
  kRankInGroup = 14,
};

// One of the parts of a filter that AND joins, for one item.
struct ClauseCheck {
  std::string text;
  bool passes = false;
  // The item's values in the fields that the part names: a name of the payload, and the value as it
  // is kept (data/payload/payload_encoding.h). Borrowed from the snapshot.
  std::vector<std::pair<std::string_view, std::span<const std::uint8_t>>> values;
};

// The facts about an item that need no score.
struct CheckedItem {
  std::string id;
  std::optional<Row> row;       // nothing: no such item exists for the call
  std::string not_found;        // the sentence for that case
  std::vector<Reason> reasons;  // only reasons that need no score
  std::vector<ClauseCheck> clauses;
};

// Checks whether the query may return each item.
//   request  of the call whose options these are
// Errors: those of ResolveQueries with the filters; work's.
// Cost: O(allowed and excluded ids), and evaluating each part of the filter.
absl::StatusOr<std::vector<CheckedItem>> CheckItems(const engine::Snapshot& snapshot,
                                                    const QueryRequest& request,
                                                    const CallOptions& options,
                                                    std::span<const std::string_view> ids,
                                                    base::LongWork& work);

// The rows of the items that a search can compare, ascending and distinct.
std::vector<Row> ComparableRows(std::span<const CheckedItem> items);

// What decides whether a row is in an answer. Copied from the query, which is gone when the answer
// comes.
struct AnswerCriteria {
  AnswerCriteria(const engine::ResolvedQuery& query, const QueryRequest& request);

  // RowPlaces::score_needed; nothing when the answer reaches every row or group.
  std::optional<float> ScoreNeeded(const engine::RowPlaces& places) const {
    return reaches_all ? std::nullopt : places.score_needed;
  }

  std::uint32_t reach;   // rows or groups: offset + k, at most all that exist
  bool reaches_all;      // whether offset + k is more than exist
  std::uint32_t offset;  // of the reach, skipped
  float requested_threshold;
  float score_threshold;  // for canonical scores
  bool is_cold_start;
  std::optional<engine::Diversity> diversity;
  std::optional<engine::Grouping> grouping;
  std::string group_field;
};

// Adds the reasons that a place gives.
void AddPlaceReasons(const engine::RowPlace& place, const AnswerCriteria& criteria,
                     std::vector<Reason>& reasons);

// The explanation of one item, for people.
//   place         null for an item that was not compared
//   score_needed  RowPlaces::score_needed
std::string ExplanationText(const engine::Snapshot& snapshot, const CheckedItem& item,
                            const engine::RowPlace* place, const AnswerCriteria& criteria,
                            std::optional<float> score_needed);

}  // namespace simile::engine
