#include "bench/code_read.h"

#include <algorithm>
#include <limits>

#include "certificate/seeded_random.h"

namespace simile::bench {
namespace {

constexpr std::size_t kTrials = 3;

}  // namespace

CodeRead::CodeRead(std::size_t row_count, std::size_t dim, unsigned threads)
    : pool_(threads),
      bytes_((row_count * dim + kReadMultiple - 1) / kReadMultiple * kReadMultiple),
      memory_(bytes_) {
  tests::SeededRandom random(1);
  auto* words = memory_.As<std::uint64_t>();
  std::generate(words, words + bytes_ / sizeof(*words), [&] { return random.Bits(); });
  double best = std::numeric_limits<double>::infinity();
  for (const ReadPattern& pattern : ReadPatterns()) {
    double seconds = std::numeric_limits<double>::infinity();
    for (std::size_t trial = 0; trial < kTrials; ++trial) {
      seconds = std::min(seconds, TimeRead(pattern, Memory(), pool_).count());
    }
    if (seconds < best) {
      best = seconds;
      pattern_ = pattern;
    }
  }
}

double CodeRead::Seconds() { return TimeRead(pattern_, Memory(), pool_).count(); }

}  // namespace simile::bench
