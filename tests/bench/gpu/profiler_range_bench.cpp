// What a profiler range costs the host where no profiler is attached. Needs no card.
#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/profiler_range.h"

int main() {
  constexpr int kRanges = 10'000'000;
  constexpr std::size_t kRounds = 21;
  std::vector<double> ns;  // a range, by round
  while (ns.size() < kRounds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRanges; ++i) {
      const simile::backend::cuda::ProfilerRange range("range");
      asm volatile("" ::: "memory");  // as work inside would, so that the range stays
    }
    const std::chrono::duration<double, std::nano> passed =
        std::chrono::steady_clock::now() - begin;
    ns.push_back(passed.count() / kRanges);
  }
  std::ranges::sort(ns);
  fmt::print("a range: {:.2f} ns (median of {}; {:.2f} to {:.2f})\n", ns[kRounds / 2], kRounds,
             ns.front(), ns.back());
}
