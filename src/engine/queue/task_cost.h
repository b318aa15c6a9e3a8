#pragma once

#include <cstdint>

#include "engine/queue/lane.h"
#include "engine/search/search_task.h"

namespace simile::engine {

// Whether one search for each query does not answer a task.
bool IsHard(const SearchTask& task);
Lane LaneOf(const SearchTask& task);

// What a task counts as in the queue and in a pass: its searches. A query with several vectors
// needs one search for each.
std::uint32_t SearchesOf(const SearchTask& task);

// The work beside searches, as far as it is known before the first: scores * dim, of the rows that
// are compared for diversity, and of all rows where they are ranked without a search.
double ProductsOf(const SearchTask& task);

// The memory that a task holds. What it shares with others, such as a cached mask, counts by its
// share.
std::uint64_t BytesOf(const SearchTask& task);

}  // namespace simile::engine
