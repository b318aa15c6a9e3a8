#include "data/formats/equal_rows.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

constexpr std::size_t kSeenMax = 16'384;

// SplitMix64, a bijection that mixes every bit.
std::uint64_t Mixed(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9;
  number = (number ^ number >> 27) * 0x94D049BB133111EB;
  return number ^ number >> 31;
}

std::uint64_t HashSums(const RowSums& sums) {
  return Mixed(std::bit_cast<std::uint64_t>(sums.squares) +
               Mixed(std::bit_cast<std::uint64_t>(sums.weighted)));
}

}  // namespace

std::string EqualRowsText(const EqualGroup& group, std::uint64_t row_count) {
  if (group.count < 2 || group.count < row_count / 1'000) return {};
  if (group.count == row_count) {
    return fmt::format("all {} rows share one vector; every search returns them in row order",
                       base::Grouped(row_count));
  }
  return fmt::format("{}{} rows share one vector, {} row {}; a search returns them in row order",
                     group.is_exact ? "" : "at least ", base::Grouped(group.count),
                     group.is_exact ? "the first is" : "one is", base::Grouped(group.first_row));
}

std::vector<double> MakeColumnWeights(std::size_t dim) {
  std::vector<double> weights(dim);
  std::uint64_t state = 0;
  for (double& weight : weights) {
    weight = 0.5 + static_cast<double>(Mixed(state += 0x9E3779B97F4A7C15) >> 11) * 0x1p-53;
  }
  return weights;
}

RowSums SumRow(std::span<const double> values, std::span<const double> weights) {
  assert(values.size() == weights.size());
  return {.squares = ProductSum(values, values), .weighted = ProductSum(values, weights)};
}

EqualRows::EqualRows(std::uint64_t row_count)
    : seen_(2 * std::bit_ceil(std::min<std::uint64_t>(row_count, kSeenMax) + 1)) {}

EqualRows::Seen& EqualRows::FindPlace(std::uint64_t hash) {
  std::size_t place = hash % seen_.size();
  while (seen_[place].count > 0 && seen_[place].hash != hash) place = (place + 1) % seen_.size();
  return seen_[place];
}

void EqualRows::Add(Row row, const RowSums& sums) {
  const std::uint64_t hash = HashSums(sums);
  Seen& seen = FindPlace(hash);
  if (seen.count++ > 0) return;
  seen.hash = hash;
  seen.first_row = row;
  if (++seen_count_ > kSeenMax) ForgetRare();
}

void EqualRows::ForgetRare() {
  while (seen_count_ > kSeenMax / 2) {
    ++forgotten_max_;
    std::vector<Seen> all(seen_.size());
    all.swap(seen_);
    seen_count_ = 0;
    for (const Seen& seen : all) {
      if (seen.count <= forgotten_max_) continue;
      FindPlace(seen.hash) = seen;
      ++seen_count_;
    }
  }
}

EqualGroup EqualRows::Largest() const {
  EqualGroup largest{.is_exact = forgotten_max_ == 0};
  for (const Seen& seen : seen_) {
    const bool is_larger = seen.count > largest.count ||
                           (seen.count == largest.count && seen.first_row < largest.first_row);
    if (!is_larger) continue;
    largest.count = seen.count;
    largest.first_row = seen.first_row;
  }
  return largest;
}

}  // namespace simile::data
