#pragma once

#include <optional>

#include <absl/status/statusor.h>

#include "engine/search/group_hits.h"
#include "engine/search/ranking.h"
#include "engine/search/resolved_query.h"
#include "engine/search/search_batch_builder.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Answers one query that a single search does not, in as many rounds of searches as it takes.
// Borrows what it is made from.
class Refinement {
 public:
  //   vectors  [query.vector_count, dim]  the query's own
  //   context  checked between two pieces of long work
  // REQUIRES: the query is not plain. Throws std::bad_alloc, as do all methods.
  Refinement(const ResolvedQuery& query, MatrixView vectors, const Snapshot& snapshot,
             SegmentSearch& search, const CallContext& context);

  // Adds the searches of the next round; perhaps none. ReadResults follows.
  void AddSearches(SearchBatchBuilder& builder);
  // Reads the results of that round. Returns whether result() is complete.
  // Errors: the backend's and CallContext's.
  absl::StatusOr<bool> ReadResults(const SearchResult& result);

  QueryResult& result() { return result_; }

 private:
  absl::Status CompleteResult();

  const ResolvedQuery& query_;
  const Snapshot& snapshot_;
  SegmentSearch& search_;
  const CallContext context_;
  QueryResult result_;  // its execution is the sum so far
  Ranking ranking_;
  std::optional<GroupHits> groups_;
  bool ranking_has_begun_ = false;
};

}  // namespace simile::engine
