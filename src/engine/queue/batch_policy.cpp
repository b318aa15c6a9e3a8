#include "engine/queue/batch_policy.h"

namespace simile::engine {

void ChooseBatch(std::span<const Waiting> waiting, std::uint32_t batch_queries_max,
                 std::vector<std::size_t>& taken) {
  taken.clear();
  if (waiting.empty()) return;
  std::uint64_t query_count = 0;
  for (std::size_t index = 0; index < waiting.size(); ++index) {
    const Waiting& task = waiting[index];
    if (task.snapshot != waiting.front().snapshot) continue;
    const std::uint64_t with_task = query_count + task.query_count;
    if (index > 0 && with_task > batch_queries_max) break;
    taken.push_back(index);
    query_count = with_task;
  }
}

}  // namespace simile::engine
