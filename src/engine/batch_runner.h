#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "data/matrix.h"
#include "engine/executor.h"
#include "engine/segment_search.h"
#include "simile/hits.h"
#include "simile/query.h"

namespace simile::engine {

// The dispatch thread's workspace: makes one batch of several tasks' queries and runs it. All of
// it is kept from batch to batch, so that a warm pass allocates only the answers it hands out.
class BatchRunner {
 public:
  // Searches the tasks' snapshot for all their queries and copies the answers out of the workspace:
  // for each task its hits, and on its receipt the rows scanned and rescored; the rest of the
  // receipt is the executor's.
  //   answers  overwritten, one a task; unspecified after an error
  // REQUIRES: at least one task; all pin the same snapshot.
  // Errors: kResourceExhausted when there is no memory for the batch; the backend's own.
  absl::Status Run(std::span<const std::unique_ptr<SearchTask>> tasks,
                   std::vector<SearchAnswer>& answers);

 private:
  absl::Status Search(std::span<const std::unique_ptr<SearchTask>> tasks);
  SearchAnswer Answer(std::size_t first_query, std::size_t query_count) const;
  // The queries as one matrix: a lone task's own, else gathered.
  absl::StatusOr<MatrixView> Queries(std::span<const std::unique_ptr<SearchTask>> tasks);

  SegmentSearch search_;
  data::Matrix gathered_;  // [lanes, 32]: plain room for floats, whatever a batch's dimension
  std::vector<QuerySpec> specs_;
  SearchResult result_;
};

}  // namespace simile::engine
