#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/cpu/thread_pool.h"

namespace simile::bench {

inline double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Calls work(participant) on every thread of the pool, all starting together. Returns the time from
// the first start to the last end, so that waking the threads is not counted.
template <class Work>
std::chrono::duration<double> TimeTogether(backend::cpu::ThreadPool& pool, Work work) {
  using Clock = std::chrono::steady_clock;
  const unsigned threads = pool.thread_count();
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times(threads);
  std::atomic<unsigned> arrived{0};
  auto job = [&](unsigned participant) {
    arrived.fetch_add(1);
    while (arrived.load() < threads) {
    }
    times[participant].first = Clock::now();
    work(participant);
    times[participant].second = Clock::now();
  };
  pool.Run(job);
  auto [first, last] = times[0];
  for (const auto& [start, end] : times) {
    first = std::min(first, start);
    last = std::max(last, end);
  }
  return last - first;
}

}  // namespace simile::bench
