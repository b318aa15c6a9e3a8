#pragma once

#include <cstdint>

#include "engine/queue/cost_estimator.h"
#include "engine/queue/lane.h"
#include "engine/search/search_task.h"

namespace simile::engine {

// Whether one search for each query does not answer a task.
bool IsHard(const SearchTask& task);
Lane LaneOf(const SearchTask& task);

// What a task counts as in the queue and in a pass: its searches. A query with several vectors
// needs one search for each.
std::uint32_t SearchesOf(const SearchTask& task);

// How many rows the longest list of its searches holds.
std::uint32_t ListLengthOf(const SearchTask& task);

// The work beside searches, in milliseconds, as far as it is known beforehand: rows compared for
// diversity, rows visited for a cold start, rows scored for explanations. Scoring every row for
// want of a list is not known beforehand.
double WorkMs(const SearchTask& task, const CostEstimator& estimator);

// The memory that a task holds. What it shares with others, such as a cached mask, counts by its
// share.
std::uint64_t BytesOf(const SearchTask& task);

}  // namespace simile::engine
