#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simile/matrix_view.h"

namespace simile::data {

// Rows that share one vector.
struct EqualGroup {
  std::uint64_t count = 0;
  Row first_row = 0;
  bool is_exact = true;  // false: more rows may share it, and an earlier one
};

// What an owner should know of rows that share one vector: `1,500 rows share one vector, the first
// is row 12; ...`. Empty for fewer than one row in a thousand.
std::string EqualRowsText(const EqualGroup& group, std::uint64_t row_count);

// Two sums over a row. The root of `squares` is the row's Euclidean length; `weighted` has a random
// weight for each column. Equal rows have equal sums. Among ten million rows, two different ones
// have equal sums with a probability below 1e-6.
struct RowSums {
  double squares = 0;
  double weighted = 0;
};
// Computes both sums of a row.
//   weights  MakeColumnWeights(values.size())
RowSums SumRow(std::span<const double> values, std::span<const double> weights);
// A random weight for each of `dim` columns, the same on every machine.
std::vector<double> MakeColumnWeights(std::size_t dim);

// Finds the largest group of equal rows, in one pass and two MiB. Beyond 16,384 different vectors
// it drops the least frequent vectors (lossy counting: Manku and Motwani, VLDB 2002).
class EqualRows {
 public:
  explicit EqualRows(std::uint64_t row_count);

  void Add(Row row, const RowSums& sums);
  // Count 0 when no row was added.
  EqualGroup Largest() const;

 private:
  struct Seen {
    std::uint64_t hash = 0;   // of the sums
    std::uint64_t count = 0;  // 0: an empty place
    Row first_row = 0;
  };
  Seen& FindPlace(std::uint64_t hash);
  void ForgetRare();

  // An open table with linear probing, at most half full: a power of two. Not a map of absl's,
  // which does not survive a failing allocation.
  std::vector<Seen> seen_;
  std::size_t seen_count_ = 0;
  std::uint64_t forgotten_max_ = 0;  // the most rows of a vector that was forgotten
};

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
