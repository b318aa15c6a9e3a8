#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "backend/cpu/thread_pool.h"
#include "engine/query/query_request.h"
#include "engine/snapshots/snapshot.h"

namespace simile::bench {

// A collection in a folder, searched by this backend as the server would.
absl::StatusOr<engine::SnapshotPtr> LoadCollection(const std::string& folder, Backend& backend);

// A random collection: clustered rows with genres and years, as films have, and users who have each
// seen two hundred rows.
absl::StatusOr<engine::SnapshotPtr> DrawCollection(std::size_t row_count, std::size_t dim,
                                                   Backend& backend,
                                                   backend::cpu::ThreadPool& pool);

// Filters by genre and year, all different.
std::vector<std::string> MixedFilters(const engine::Snapshot& snapshot, std::size_t count);
// One filter for each kind of condition on genres and years.
std::vector<std::string> ConditionFilters(const engine::Snapshot& snapshot);
// A request for an item for each filter, with a k and exclusions of its own. Borrows the filters.
std::vector<engine::QueryRequest> MixedRequests(const engine::Snapshot& snapshot,
                                                const std::vector<std::string>& filters);
// Recommendations to users, at most as many as there are.
std::vector<engine::QueryRequest> UserRequests(const engine::Snapshot& snapshot, std::size_t count);
// Requests of eight examples, five positive, by this strategy; without one, plain searches for
// items.
std::vector<engine::QueryRequest> ExampleRequests(const engine::Snapshot& snapshot,
                                                  std::optional<engine::Strategy> strategy,
                                                  std::size_t count);

}  // namespace simile::bench
