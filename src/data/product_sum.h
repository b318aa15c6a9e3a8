#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace simile::data {

// Sums products in double, in eight lanes: in one chain each addition waits for the one before.
// Files and requests use this order, so equal vectors get equal lengths. A product of fp32 numbers
// is exact in double and cannot overflow, so their sum is finite exactly when every number is.
template <class Number>
double ProductSum(std::span<const Number> a, std::span<const Number> b) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum = 0;
  for (; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace simile::data
