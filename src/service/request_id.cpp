#include "service/request_id.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/split_mix.h"

namespace simile::service {

bool IsUsableRequestId(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string RequestIds::Next() {
  // Both steps are bijections: distinct counters give distinct ids.
  return fmt::format(
      "{:016x}", base::SplitMix(next_.fetch_add(base::kSplitMixStep, std::memory_order_relaxed)));
}

}  // namespace simile::service
