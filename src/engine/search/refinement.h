#pragma once

#include <cstdint>
#include <optional>

#include <absl/status/status.h>

#include "engine/search/diversify.h"
#include "engine/search/group_hits.h"
#include "engine/search/piece_of_work.h"
#include "engine/search/ranking.h"
#include "engine/search/resolved_query.h"
#include "engine/search/row_places.h"
#include "engine/search/search_batch_builder.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Answers one query that a single search does not, in as many searches and pieces of work as it
// takes. Borrows what it is made from.
class Refinement {
 public:
  //   vectors  [query.vector_count, dim]  the query's own
  // Throws std::bad_alloc, as do all methods.
  Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
             SegmentSearch& search);

  // What comes next: AddSearches and then ReadResults, Work, or reading result().
  Step next() const;
  void AddSearches(SearchBatchBuilder& builder) { ranking_.AddSearches(builder); }
  // Reads the results of those searches.
  void ReadResults(const SearchResult& result);
  // One piece, some milliseconds. Errors: the backend's.
  absl::Status Work();

  QueryResult& result() { return result_; }
  const QueryResult& result() const { return result_; }

 private:
  enum class Stage : std::uint8_t { kRanking, kGrouping, kDiversifying, kPlacing, kDone };

  void BeginRanking();
  void FinishRanking();
  void WorkOnGroups();
  // The answer is found; rows may be left to explain.
  void FinishAnswer();

  const ResolvedQuery& query_;
  const MatrixView vectors_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  QueryResult result_;  // its execution is the sum so far
  Ranking ranking_;
  std::optional<GroupHits> groups_;
  std::optional<Diversifier> diversifier_;
  std::optional<PlaceFinder> places_;
  Stage stage_ = Stage::kRanking;
};

}  // namespace simile::engine
