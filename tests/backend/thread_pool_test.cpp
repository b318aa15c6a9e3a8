#include "backend/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace simile::backend::cpu {
namespace {

// Calls body once on every thread of the pool: each waits inside the job for all the others.
template <class Body>
void OnEveryThread(ThreadPool& pool, Body body) {
  std::atomic<unsigned> arrived{0};
  auto job = [&](unsigned participant) {
    arrived.fetch_add(1);
    while (arrived.load() < pool.thread_count()) {
    }
    body(participant);
  };
  pool.Run(job);
}

TEST(ThreadPoolTest, RunsOnTheCallerAloneWithOneThread) {
  ThreadPool pool(1);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<unsigned> participants;
  auto job = [&](unsigned participant) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    participants.push_back(participant);
  };
  pool.Run(job);
  EXPECT_EQ(participants, std::vector<unsigned>{0});
}

TEST(ThreadPoolTest, CallsEachParticipantOnceWhenAllTakePart) {
  ThreadPool pool(5);
  ASSERT_EQ(pool.thread_count(), 5U);
  std::vector<std::atomic<int>> calls(5);
  OnEveryThread(pool, [&](unsigned participant) { ++calls[participant]; });
  for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
}

class TurnThatLeavesOne final : public Turn {
 public:
  bool IsOver() const override { return false; }
  bool LeavesOneThread() const override { return true; }
};

TEST(ThreadPoolTest, LeavesTheLastWorkerIdleInATurnThatSaysSo) {
  for (const unsigned threads : {1U, 2U, 3U, 5U}) {
    ThreadPool pool(threads);
    const unsigned left = std::max(threads, 2U) - 1;
    std::vector<std::atomic<int>> calls(threads);
    {
      const ThreadPool::ScopedTurn scoped(pool, TurnThatLeavesOne());
      for (int i = 0; i < 1'000; ++i) {
        auto job = [&](unsigned participant) { ++calls[participant]; };
        pool.Run(job);
      }
    }
    EXPECT_EQ(calls[0].load(), 1'000);
    for (unsigned idle = left; idle < threads; ++idle) EXPECT_EQ(calls[idle].load(), 0) << threads;
    OnEveryThread(pool, [&](unsigned participant) { ++calls[participant]; });
    for (unsigned idle = left; idle < threads; ++idle) EXPECT_EQ(calls[idle].load(), 1) << threads;
  }
}

#if defined(__linux__)
int AllowedCount() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return CPU_COUNT(&allowed);
}

TEST(ThreadPoolTest, PinsWorkersWhenThereIsOneForEveryProcessor) {
  const auto processors = static_cast<unsigned>(AllowedCount());
  ThreadPool pool(processors);
  std::vector<int> allowed(processors, 0);
  OnEveryThread(pool, [&](unsigned participant) { allowed[participant] = AllowedCount(); });
  for (unsigned worker = 1; worker < processors; ++worker) EXPECT_EQ(allowed[worker], 1);
}

TEST(ThreadPoolTest, LeavesWorkersFreeWhenThereAreMoreThanProcessors) {
  const auto processors = static_cast<unsigned>(AllowedCount());
  ThreadPool pool(processors + 1);
  std::vector<int> allowed(processors + 1, 0);
  OnEveryThread(pool, [&](unsigned participant) { allowed[participant] = AllowedCount(); });
  for (const int count : allowed) EXPECT_EQ(count, static_cast<int>(processors));
}
#endif

TEST(ThreadPoolTest, DoesEveryPieceOfManyShortJobs) {
  ThreadPool pool(3);
  constexpr std::size_t kJobs = 20'000;
  constexpr std::size_t kPieces = 7;
  std::size_t total = 0;  // plain: Run's return must make the workers' writes visible
  for (std::size_t i = 0; i < kJobs; ++i) {
    std::atomic<std::size_t> next{0};
    std::vector<std::size_t> done(pool.thread_count(), 0);
    auto job = [&](unsigned participant) {
      while (next.fetch_add(1) < kPieces) ++done[participant];
    };
    pool.Run(job);
    for (const std::size_t count : done) total += count;
  }
  EXPECT_EQ(total, kJobs * kPieces);
}

// The register that says how floating-point numbers are rounded and whether subnormal ones are
// flushed to zero.
#if defined(__x86_64__)
constexpr std::uint64_t kFlushes = 0x8040;  // flush-to-zero, denormals-are-zero
constexpr std::uint64_t kRounding = _MM_ROUND_MASK;
std::uint64_t ArithmeticMode() { return _mm_getcsr(); }
void SetArithmeticMode(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushes = 1U << 24;  // FPCR.FZ
constexpr std::uint64_t kRounding = 3U << 22;
std::uint64_t ArithmeticMode() {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void SetArithmeticMode(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#endif

#if defined(__x86_64__) || defined(__aarch64__)
TEST(ThreadPoolTest, KeepsSubnormalsOnEveryThread) {
  ThreadPool pool(4);
  std::vector<std::uint64_t> modes(pool.thread_count(), ~0U);
  OnEveryThread(pool, [&](unsigned participant) { modes[participant] = ArithmeticMode(); });
  for (const std::uint64_t bits : modes) {
    EXPECT_EQ(bits & kFlushes, 0U);
    EXPECT_EQ(bits & kRounding, 0U);  // to the nearest
  }
}

TEST(ThreadPoolTest, KeepsSubnormalsOnWorkersOfACreatorThatFlushesThem) {
  const std::uint64_t before = ArithmeticMode();
  SetArithmeticMode(before | kFlushes);
  ThreadPool pool(3);
  SetArithmeticMode(before);
  std::vector<std::uint64_t> modes(pool.thread_count(), ~0U);
  OnEveryThread(pool, [&](unsigned participant) { modes[participant] = ArithmeticMode(); });
  for (const std::uint64_t bits : modes) EXPECT_EQ(bits & kFlushes, 0U);
}
#endif

}  // namespace
}  // namespace simile::backend::cpu
