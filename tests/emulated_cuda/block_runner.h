#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulated_cuda/fiber.h"
#include "emulated_cuda/random.h"

namespace emulated_cuda {

inline constexpr std::size_t kThreadsMax = 1024;
inline constexpr std::size_t kDynamicSharedMax = std::size_t{227} * 1024;
// Shared memory of a block without cudaFuncSetAttribute.
inline constexpr std::size_t kSharedDefault = std::size_t{48} * 1024;
inline constexpr std::size_t kSharedGuard = 256;

// The thread-local memory of a kernel's library, which holds plain __shared__ variables.
struct SharedModule {
  std::size_t id = 0;  // the dynamic linker's
  std::size_t bytes = 0;
};

class BlockRunner;

// One launch while it runs; shared by all its runners.
struct GridRun {
  std::string name;
  dim3 grid;
  dim3 block;
  std::size_t dynamic_bytes = 0;
  std::size_t shared_max = 0;
  SharedModule module;
  std::function<void()> body;
  std::vector<BlockRunner*> runners;
  std::atomic<cudaError_t> error{cudaSuccess};
  // Incremented by every event except a poll without success.
  std::atomic<std::uint64_t> events{0};
};

// Runs one block at a time, all its threads as fibers of one OS thread. Reused between launches.
class BlockRunner {
 public:
  BlockRunner() {
    host_.body = &ThreadMain;
    host_.argument = this;
  }
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  // Called before the first block of a launch, for all its runners before any of them runs.
  void Begin(GridRun& grid, std::uint64_t seed, bool shuffled);
  // On one OS thread: before the first block, the blocks, after the last.
  void Enter();
  void Run(unsigned linear_block);
  void Leave();

  // The methods below are called by the running thread of the block.
  int Barrier(BarrierKind kind, bool predicate, int line);
  void MeetWarp(unsigned mask, void* mine, CompleteWarp complete, int line);
  void Preempt();
  unsigned Poll(const unsigned* from);
  void Register(void* data, std::size_t data_bytes, void* guard, std::size_t guard_bytes);
  [[noreturn]] void Fault(cudaError_t error, std::string&& text);
  // Dynamic shared memory, but not of this launch.
  bool IsBehindDynamic(const void* at, std::size_t bytes) const;

  // For a report: "kernel k, block (..), thread (..): ".
  std::string Where() const;

 private:
  enum class State : unsigned char { kReady, kBarrier, kWarp, kEnded };

  // The first cache line holds what a switch uses, the second what kernels read.
  struct alignas(64) Thread {
    Fiber fiber;
    State state = State::kReady;
    int line = 0;       // where it waits
    unsigned mask = 0;  // the lanes it waits for
    unsigned polled_value = 0;
    const unsigned* polled = nullptr;
    alignas(64) ThreadContext context;
    void* argument = nullptr;
    CompleteWarp complete = nullptr;
  };
  struct Warp {
    unsigned waiting = 0;  // lanes in a rendezvous
    unsigned absent = 0;   // lanes that ended or do not exist
  };
  struct Range {
    unsigned char* begin;
    unsigned char* end;
  };
  struct Offsets {
    std::size_t begin;
    std::size_t end;
  };

  static void ThreadMain(void* runner);
  void Prepare(unsigned linear_block);
  void PoisonShared();
  void CheckGuards();
  void Resume(Thread& thread);
  void Suspend(bool for_ever);
  void End(Thread& thread);
  bool CompleteMeeting(std::size_t warp, unsigned mask);
  bool Stopped() const { return failed_ || grid_->error.load(std::memory_order_relaxed) != 0; }
  void Fail(cudaError_t error, const std::string& text);
  std::string Deadlock() const;
  void Happened();
  bool EverybodyIsStuck();

  // Threads that may run: a ring of thread numbers.
  void MakeReady(std::size_t thread);
  void MakeAllReady();
  Thread& TakeReady();
  bool HasReady() const { return ready_begin_ != ready_end_; }
  unsigned short& Ready(std::size_t at) { return ready_[at % ready_.size()]; }

  GridRun* grid_ = nullptr;
  bool shuffled_ = false;
  bool failed_ = false;
  Random random_;
  FiberHost host_;
  ThreadContext** current_ = nullptr;  // this OS thread's
  BlockContext block_{};
  std::array<Thread, kThreadsMax> threads_;
  std::array<Warp, kThreadsMax / 32> warps_;
  std::size_t count_ = 0, alive_ = 0;
  Thread* running_ = nullptr;

  std::array<unsigned short, 2 * kThreadsMax> ready_;
  std::size_t ready_begin_ = 0, ready_end_ = 0;

  BarrierKind barrier_kind_ = BarrierKind::kPlain;
  int barrier_line_ = 0;
  std::size_t barrier_arrived_ = 0, barrier_true_ = 0;
  int barrier_result_ = 0;

  std::vector<Range> guards_;  // this block's
  // Known arrays in the module's memory, sorted. Offsets, because each OS thread has a copy of that
  // memory.
  std::vector<Offsets> arrays_;
  std::size_t array_module_ = 0;
  std::size_t static_bytes_ = 0;
  Range plain_{nullptr, nullptr};  // this OS thread's copy of the module's memory

  // Progress of the check that all threads only poll: events * 4 + stage.
  std::atomic<std::uint64_t> stuck_{0};
  std::size_t fruitless_ = 0;
};

}  // namespace emulated_cuda
