#include "certificate/canonical_score.h"

#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "certificate/canonical_kernels.h"
#include "simile/rank_key.h"

namespace simile::certificate {
namespace {

constexpr CanonicalKernel kPortable{"portable", &ScoreBlockPortable, &ScoreScatteredPortable};

#if defined(__x86_64__)
constexpr CanonicalKernel kAvx512{"avx512", &ScoreBlockAvx512, &ScoreScatteredAvx512};
constexpr CanonicalKernel kAvx2{"avx2", &ScoreBlockAvx2, &ScoreScatteredAvx2};

// The builtin tests the processor and that the system saves the wide registers (XGETBV); both are
// needed.
bool CanRunAvx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("fma") != 0;
}
bool CanRunAvx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#elif defined(__aarch64__)
constexpr CanonicalKernel kNeon{"neon", &ScoreBlockNeon, &ScoreScatteredNeon};
#endif

struct KernelTable {
  std::array<const CanonicalKernel*, 3> kernels{};
  std::size_t count = 0;

  KernelTable() {
#if defined(__x86_64__)
    if (CanRunAvx512()) kernels[count++] = &kAvx512;
    if (CanRunAvx2()) kernels[count++] = &kAvx2;
#elif defined(__aarch64__)
    kernels[count++] = &kNeon;  // part of the architecture: nothing to ask the processor
#endif
    kernels[count++] = &kPortable;
  }
};

}  // namespace

std::span<const CanonicalKernel* const> SupportedCanonicalKernels() {
  static const KernelTable table;
  return {table.kernels.data(), table.count};
}

const CanonicalKernel* FindCanonicalKernel(std::string_view isa) {
  for (const CanonicalKernel* kernel : SupportedCanonicalKernels()) {
    if (kernel->isa == isa) return kernel;
  }
  return nullptr;
}

float CanonicalScoreReference(std::span<const float> a, std::span<const float> b) {
  assert(a.size() == b.size());
  std::array<float, kLaneCount> lanes{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    float& lane = lanes[i % kLaneCount];
    lane = std::fma(a[i], b[i], lane);
  }
  for (std::size_t half = kLaneCount / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return RankedScore(lanes[0]);
}

double CanonicalScoreError(std::size_t dim, double norm_a, double norm_b) {
  const std::size_t roundings = (dim + kLaneCount - 1) / kLaneCount + 5;
  const auto n = static_cast<double>(roundings);
  const double unit_roundoff = 0x1p-24;
  const double gamma = n * unit_roundoff / (1.0 - n * unit_roundoff);
  // The factor covers the rounding of this expression in double many times over.
  return (gamma * norm_a * norm_b + static_cast<double>(dim) * 0x1p-149) * (1.0 + 0x1p-40);
}

double CosineRounding(std::size_t dim) {
  // One 2^-24 for each of the two lengths, and 2^-40 for the rounding of this sum and of the
  // lengths.
  constexpr double kLengthMax = 1.0 + 0x1p-24 + 0x1p-40;
  return CanonicalScoreError(dim, kLengthMax, kLengthMax) + (kLengthMax * kLengthMax - 1);
}

float CosineThreshold(float threshold, std::size_t dim) {
  if (threshold <= -1) return -std::numeric_limits<float>::infinity();
  const double rounding = CosineRounding(dim);
  if (threshold <= 1 - rounding || threshold > 1 + rounding) return threshold;
  // The greatest float that is not above the least score of equal rows.
  const auto least = static_cast<float>(1 - rounding);
  return least <= 1 - rounding ? least
                               : std::nextafter(least, -std::numeric_limits<float>::infinity());
}

}  // namespace simile::certificate
