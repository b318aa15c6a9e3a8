#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/search/search_task.h"
#include "simile/clock.h"

namespace simile::engine {

// Answers tasks of one snapshot together, on this thread and without a queue.
//   [tasks][queries]
std::vector<absl::StatusOr<std::vector<QueryResult>>> RunTasks(
    std::span<const std::unique_ptr<SearchTask>> tasks, const Clock& clock);

}  // namespace simile::engine
