#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace simile::certificate {

// A weighted sum of fp32 vectors, computed in double.
class VectorSum {
 public:
  explicit VectorSum(std::size_t dim) : values_(dim, 0.0) {}

  //   vector  [dim]
  void Add(double factor, const float* vector) {
    double squares = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double term = factor * static_cast<double>(vector[i]);
      values_[i] += term;
      squares += term * term;
    }
    reach_ += std::sqrt(squares);
  }

  std::span<const double> values() const { return values_; }
  double length() const {
    double squares = 0;
    for (const double value : values_) squares += value * value;
    return std::sqrt(squares);
  }
  // The length that the sum would have if all vectors were parallel.
  double reach() const { return reach_; }
  // Whether the terms cancel each other out, so that only rounding is left. Terms that are all zero
  // do not: their sum is exact.
  bool CancelsOut() const { return reach_ > 0 && length() <= reach_ * 0x1p-20; }

 private:
  std::vector<double> values_;
  double reach_ = 0;
};

}  // namespace simile::certificate
