#include "backend/cpu/thread_pool.h"

#include <cfenv>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/threads.h"

namespace simile::backend::cpu {
namespace {

// A thread looks for a job for this long before it sleeps, because the jobs of one search follow
// each other within microseconds and waking a sleeping thread takes longer. 16 queries over 5,000
// rows on two processors took 270 us with 5 us, 240 with 10, 225 with 20 (engine_bench). While it
// looks, the thread yields, because other threads may need the processor.
constexpr std::chrono::microseconds kLookTime{10};
constexpr int kLooksPerYield = 8;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The processors this process may use, in order; empty when the system does not say.
std::vector<int> AllowedProcessors() {
  std::vector<int> allowed;
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return allowed;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) allowed.push_back(processor);
  }
#endif
  return allowed;
}

void Pin(std::thread& thread, int processor) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  // A refusal costs speed only.
  static_cast<void>(pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set));
#endif
}

// The processor that the calling thread runs on now; negative when the system does not say.
int CurrentProcessor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

// Waits until state's value satisfies `done` and returns that value.
template <class Done>
std::uint32_t Await(const std::atomic<std::uint32_t>& state, Done done) {
  const auto end = std::chrono::steady_clock::now() + kLookTime;
  do {
    for (int look = 0; look < kLooksPerYield; ++look) {
      const std::uint32_t value = state.load(std::memory_order_acquire);
      if (done(value)) return value;
      Pause();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  for (;;) {
    const std::uint32_t value = state.load(std::memory_order_acquire);
    if (done(value)) return value;
    state.wait(value, std::memory_order_acquire);
  }
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads) {
  const unsigned workers = std::min(threads > 0 ? threads - 1 : 0, kWorkersMax);
  workers_.reserve(workers);
  for (unsigned i = 0; i < workers; ++i) {
    try {
      workers_.emplace_back([this, participant = i + 1] {
        base::NameThread("simile-engine");
        Work(participant);
      });
    } catch (const std::exception&) {  // no thread, or no memory for one
      break;
    }
  }
  try {
    PinWorkers();
  } catch (const std::bad_alloc&) {  // without memory for the list the workers are not pinned
    homes_.clear();
  }
}

ThreadPool::~ThreadPool() {
  Open(nullptr, nullptr);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Open(JobFunction function, void* job, std::uint32_t flags) {
  function_ = function;
  job_ = job;
  state_.fetch_add(kNextJob + kOpen + flags, std::memory_order_release);
  state_.notify_all();
}

void ThreadPool::PinWorkers() {
  const std::vector<int> processors = AllowedProcessors();
  // With fewer threads than processors, the scheduler places threads better than a fixed choice.
  if (workers_.empty() || processors.size() != thread_count()) return;
  caller_processor_ = processors.front();
  homes_.assign(processors.begin() + 1, processors.end());
  for (std::size_t i = 0; i < workers_.size(); ++i) Pin(workers_[i], homes_[i]);
}

// Moves a pinned worker off the caller's processor. The caller is not pinned, and the system moves
// it now and then.
void ThreadPool::MakeWayForCaller() {
  const int now = CurrentProcessor();
  if (homes_.empty() || now == caller_processor_) return;
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    if (homes_[i] != now) continue;
    std::swap(homes_[i], caller_processor_);
    return Pin(workers_[i], homes_[i]);
  }
}

void ThreadPool::RunErased(JobFunction function, void* job) {
  // No worker takes part: there is none, or the only one stays idle.
  if (workers_.size() <= (leaves_one_ ? 1 : 0)) return function(job, 0);
  MakeWayForCaller();
  const std::uint32_t flags = leaves_one_ ? kLeavesLast : 0;
  Open(function, job, flags);
  function(job, 0);
  state_.fetch_sub(kOpen + flags, std::memory_order_release);
  Await(state_, [](std::uint32_t state) { return (state & kInsideMask) == 0; });
}

void ThreadPool::Work(unsigned participant) {
  // Scores are the same bits everywhere only in the default floating-point environment. A new
  // thread inherits its creator's, which some library may have set to flush subnormals.
  std::fesetenv(FE_DFL_ENV);
  std::uint32_t last_job = 0;
  for (;;) {
    std::uint32_t state = Await(state_, [&](std::uint32_t value) {
      const bool stays_out = (value & kLeavesLast) != 0 && participant == workers_.size();
      return (value & kOpen) != 0 && value / kNextJob != last_job && !stays_out;
    });
    if (!state_.compare_exchange_strong(state, state + kOneInside, std::memory_order_acq_rel)) {
      continue;  // another worker entered or left, or the job was closed: try again
    }
    last_job = state / kNextJob;
    if (function_ == nullptr) return;
    function_(job_, participant);
    const std::uint32_t before = state_.fetch_sub(kOneInside, std::memory_order_acq_rel);
    const bool last_out = (before & kInsideMask) == kOneInside;
    if (last_out && (before & kOpen) == 0) state_.notify_all();
  }
}

}  // namespace simile::backend::cpu
