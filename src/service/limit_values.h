#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simile/limits.h"

namespace simile::service {

struct LimitValue {
  std::string name;  // as the member of Limits, times with `_ms`
  std::uint64_t value = 0;
};

// All limits, in the order of their declaration.
std::vector<LimitValue> LimitValues(const Limits& limits);

}  // namespace simile::service
