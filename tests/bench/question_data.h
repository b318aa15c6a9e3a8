#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/cpu/thread_pool.h"
#include "engine/snapshot.h"
#include "recommend/query_request.h"

namespace simile::bench {

// A collection in a folder, searched by this backend as the server would.
absl::StatusOr<engine::SnapshotPtr> LoadCollection(const std::string& folder, Backend& backend);

// A collection that is drawn: clustered rows with genres and years as films have them, and users
// who have each seen two hundred rows.
absl::StatusOr<engine::SnapshotPtr> DrawCollection(std::size_t row_count, std::size_t dim,
                                                   Backend& backend,
                                                   backend::cpu::ThreadPool& pool);

// Calls for items that differ in all they can: every one has a filter, a k and exclusions of its
// own. Filters are by genre and year.
std::vector<recommend::QueryRequest> MixedRequests(const engine::Snapshot& snapshot,
                                                   std::size_t count);
// Recommendations to users, at most as many as there are.
std::vector<recommend::QueryRequest> UserRequests(const engine::Snapshot& snapshot,
                                                  std::size_t count);
// A strategy over eight examples, five positive, or without one a plain search for an item.
std::vector<recommend::QueryRequest> ExampleRequests(const engine::Snapshot& snapshot,
                                                     std::optional<recommend::Strategy> strategy,
                                                     std::size_t count);

}  // namespace simile::bench
