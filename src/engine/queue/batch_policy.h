#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simile::engine {

// A waiting task as the policy sees it.
struct Waiting {
  const void* snapshot = nullptr;  // identity only
  std::uint32_t query_count = 0;
};

// Which waiting tasks go into the next batch: the oldest one, and after it every task of the same
// snapshot while the batch stays within batch_queries_max, in order of arrival: a small task never
// overtakes a large one that did not fit. Tasks of other snapshots keep their place. A task is
// never split: one that is larger than a batch, by its queries or their vectors, runs alone.
// No task is delayed to fill a batch: tasks that arrive during a pass form the next batch.
//   waiting  oldest first
//   taken    overwritten: indexes into `waiting`, ascending
// Pure; O(waiting).
void ChooseBatch(std::span<const Waiting> waiting, std::uint32_t batch_queries_max,
                 std::vector<std::size_t>& taken);

}  // namespace simile::engine
