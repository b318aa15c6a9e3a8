#include "bench/synthetic_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "certificate/seeded_random.h"

namespace simile::bench {
namespace {

constexpr std::size_t kCentreCount = 4'000;
constexpr double kZipfExponent = 0.7;
constexpr std::size_t kNoiseOneIn = 10;
constexpr double kCosineMin = 0.5;
constexpr double kCosineMax = 0.9;
constexpr std::size_t kRowsAtOnce = 1'024;

// Centres are numbered apart from rows and queries.
constexpr std::uint64_t kFirstCentre = std::uint64_t{1} << 50;

tests::SeededRandom RandomOf(std::uint64_t seed, std::uint64_t number) {
  tests::SeededRandom seeds(seed);
  tests::SeededRandom numbers(seeds.Bits() ^ number);
  return tests::SeededRandom(numbers.Bits());
}

double Unit(tests::SeededRandom& random) {
  return static_cast<double>(random.Bits() >> 11) * 0x1p-53;
}

void Scale(float* values, std::size_t dim, double length) {
  double squares = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  const double factor = length / std::sqrt(squares);
  for (std::size_t i = 0; i < dim; ++i) {
    values[i] = static_cast<float>(static_cast<double>(values[i]) * factor);
  }
}

// Draws a unit vector in a nearly uniform direction: each component is a sum of four uniform
// numbers, which is close to normal, from one draw.
void DrawDirection(tests::SeededRandom& random, float* values, std::size_t dim) {
  for (std::size_t i = 0; i < dim; ++i) {
    const std::uint64_t bits = random.Bits();
    const std::int64_t sum =
        static_cast<std::int64_t>(bits & 0xffff) + static_cast<std::int64_t>(bits >> 16 & 0xffff) +
        static_cast<std::int64_t>(bits >> 32 & 0xffff) + static_cast<std::int64_t>(bits >> 48);
    values[i] = static_cast<float>(2 * sum - std::int64_t{4} * 0xffff - 1);
  }
  Scale(values, dim, 1);
}

}  // namespace

SyntheticRows::SyntheticRows(Spread spread, std::size_t dim, std::uint64_t seed, double norm_spread)
    : spread_(spread), dim_(dim), seed_(seed), norm_spread_(norm_spread) {
  if (spread_ == Spread::kIsotropic) return;
  centres_.resize(kCentreCount * dim_);
  shares_up_to_.resize(kCentreCount);
  double total = 0;
  for (std::size_t centre = 0; centre < kCentreCount; ++centre) {
    tests::SeededRandom random = RandomOf(seed_, kFirstCentre + centre);
    DrawDirection(random, centres_.data() + centre * dim_, dim_);
    total += std::pow(static_cast<double>(centre + 1), -kZipfExponent);
    shares_up_to_[centre] = total;
  }
  for (double& share : shares_up_to_) share /= total;
}

std::size_t SyntheticRows::CentreAt(double share) const {
  const auto found = std::ranges::upper_bound(shares_up_to_, share);
  return std::min(static_cast<std::size_t>(found - shares_up_to_.begin()), kCentreCount - 1);
}

void SyntheticRows::DrawRow(std::uint64_t number, float* row, std::vector<float>& noise) const {
  tests::SeededRandom random = RandomOf(seed_, number);
  const double length = std::pow(norm_spread_, Unit(random));
  DrawDirection(random, row, dim_);
  if (spread_ == Spread::kClustered && !random.OneIn(kNoiseOneIn)) {
    noise.assign(row, row + dim_);
    const float* centre = centres_.data() + CentreAt(Unit(random)) * dim_;
    const double cosine = kCosineMin + (kCosineMax - kCosineMin) * Unit(random);
    const auto along = static_cast<float>(cosine);
    const auto across = static_cast<float>(std::sqrt(1 - cosine * cosine));
    for (std::size_t i = 0; i < dim_; ++i) row[i] = along * centre[i] + across * noise[i];
  }
  Scale(row, dim_, length);
}

absl::StatusOr<data::Matrix> SyntheticRows::Draw(std::uint64_t first, std::size_t count,
                                                 backend::cpu::ThreadPool& pool) const {
  absl::StatusOr<data::Matrix> matrix = data::Matrix::Create(count, dim_);
  if (!matrix.ok()) return matrix;
  std::atomic<std::size_t> next{0};
  auto job = [&](unsigned) {
    std::vector<float> noise(dim_);
    for (std::size_t begin; (begin = next.fetch_add(kRowsAtOnce)) < count;) {
      const std::size_t end = std::min(begin + kRowsAtOnce, count);
      for (std::size_t row = begin; row < end; ++row) {
        DrawRow(first + row, matrix->MutableRow(row), noise);
      }
    }
  };
  pool.Run(job);
  return matrix;
}

}  // namespace simile::bench
