#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <absl/status/status.h>

#include "engine/search/search_workspace.h"
#include "engine/search/task_progress.h"

namespace simile::engine {

// Answers plain queries of several tasks by one search. Used by the thread that leads; borrows its
// workspace.
class PlainPass {
 public:
  explicit PlainPass(SearchWorkspace& workspace) : workspace_(workspace) {}

  // Some queries of a task: its next ones.
  struct Part {
    TaskProgress* task = nullptr;
    std::size_t query_count = 0;
  };
  // Answers these queries into their tasks.
  // REQUIRES: at least one; plain; all tasks have begun and pin the same snapshot.
  // Errors: OUT_OF_MEMORY when there is no memory for the batch; the backend's own. No query of the
  //         parts is then answered, and each task has the error.
  absl::Status Run(std::span<const Part> parts);

 private:
  absl::Status Search(std::span<const Part> parts);
  void ReadResults(std::span<const Part> parts);

  SearchWorkspace& workspace_;
  std::vector<QuerySpec> specs_;  // of a lone part, whose vectors are searched where they are
};

}  // namespace simile::engine
