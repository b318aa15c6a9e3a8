#pragma once

#include <algorithm>
#include <vector>

namespace simile::cli::bench {

// The middle value, the upper of two; 0 without values.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace simile::cli::bench
