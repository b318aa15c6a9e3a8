#include "emulated_cuda/block_runner.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "emulated_cuda/device_memory.h"
#include "emulated_cuda/device_state.h"
#include "emulated_cuda/poison.h"

alignas(128) thread_local unsigned char dynamic_shared[emulated_cuda::kDynamicSharedMax +
                                                       emulated_cuda::kSharedGuard];

// Of the dynamic linker: the address of this OS thread's copy of a module's thread-local memory.
struct ModuleOffset {
  unsigned long module;
  unsigned long offset;
};
extern "C" void* __tls_get_addr(ModuleOffset*);  // NOLINT: its name

namespace emulated_cuda {
namespace {

std::uint64_t NextSerial() {
  static std::atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

constexpr std::uint64_t kRunnerEnded = ~std::uint64_t{0};

}  // namespace

void BlockRunner::Begin(GridRun& grid, std::uint64_t seed, bool shuffled) {
  grid_ = &grid;
  random_ = Random(seed);
  shuffled_ = shuffled;
  stuck_.store(0, std::memory_order_release);
  if (array_module_ != grid.module.id) {
    array_module_ = grid.module.id;
    arrays_.clear();
  }
}

void BlockRunner::Enter() {
  current_ = &current;
  plain_ = {nullptr, nullptr};
  if (grid_->module.id == 0) return;
  ModuleOffset begin{grid_->module.id, 0};
  plain_.begin = static_cast<unsigned char*>(__tls_get_addr(&begin));
  plain_.end = plain_.begin + grid_->module.bytes;
}

void BlockRunner::Leave() {
  grid_->events.fetch_add(1, std::memory_order_relaxed);
  stuck_.store(kRunnerEnded, std::memory_order_release);
}

void BlockRunner::Prepare(unsigned linear_block) {
  const dim3 grid = grid_->grid, block = grid_->block;
  block_ = {grid, block, {}, NextSerial()};
  block_.index = {linear_block % grid.x, linear_block / grid.x % grid.y,
                  linear_block / grid.x / grid.y};
  count_ = alive_ = std::size_t{block.x} * block.y * block.z;
  failed_ = false;
  barrier_arrived_ = barrier_true_ = 0;
  fruitless_ = 0;
  stuck_.store(0, std::memory_order_release);
  Happened();
  PoisonShared();

  unsigned x = 0, y = 0, z = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    ThreadContext& context = thread.context;
    context.index = {x, y, z};
    context.lane = static_cast<unsigned>(i % 32);
    context.block = &block_;
    context.runner = this;
    context.copies.clear();
    context.copy_group = 0;
    thread.polled = nullptr;
    thread.fiber.Start(i);
    if (++x == block.x) {
      x = 0;
      if (++y == block.y) {
        y = 0;
        ++z;
      }
    }
  }
  for (std::size_t warp = 0; warp * 32 < count_; ++warp) {
    const std::size_t lanes = std::min<std::size_t>(32, count_ - warp * 32);
    warps_[warp] = {0, lanes == 32 ? 0U : ~0U << lanes};
  }
  ready_begin_ = ready_end_ = 0;
  MakeAllReady();
}

// Memory that a block could read before it writes: its dynamic memory and the module's plain
// variables. A SharedArray is poisoned when it is declared, so that a kernel pays for its own
// arrays only.
void BlockRunner::PoisonShared() {
  guards_.clear();
  static_bytes_ = 0;
  unsigned char* const end = dynamic_shared + grid_->dynamic_bytes;
  Poison(dynamic_shared, grid_->dynamic_bytes + kSharedGuard);
  guards_.push_back({end, end + kSharedGuard});
  std::size_t from = 0;
  for (const Offsets& array : arrays_) {
    Poison(plain_.begin + from, array.begin - from);
    from = array.end;
  }
  Poison(plain_.begin + from, static_cast<std::size_t>(plain_.end - plain_.begin) - from);
}

// An event is anything that may change what a poll reads. With one runner no other thread counts.
void BlockRunner::Happened() {
  if (grid_->runners.size() > 1) {
    grid_->events.fetch_add(1, std::memory_order_release);
  } else {
    grid_->events.store(grid_->events.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  }
}

void BlockRunner::Run(unsigned linear_block) {
  Prepare(linear_block);
  while (alive_ > 0 && !Stopped()) {
    if (!HasReady()) {
      running_ = nullptr;
      Fail(cudaErrorLaunchFailure, Deadlock());
      break;
    }
    Resume(TakeReady());
  }
  *current_ = nullptr;
  running_ = nullptr;
  if (!Stopped()) CheckGuards();
}

void BlockRunner::CheckGuards() {
  for (const Range& guard : guards_) {
    const auto bytes = static_cast<std::size_t>(guard.end - guard.begin);
    const std::size_t broken = FirstNotPoison(guard.begin, bytes);
    if (broken == bytes) continue;
    return Fail(cudaErrorIllegalAddress,
                fmt::format("shared memory written {} bytes past the end of {}", broken,
                            &guard == guards_.data() ? "the dynamic shared memory" : "an array"));
  }
}

void BlockRunner::Resume(Thread& thread) {
  running_ = &thread;
  *current_ = &thread.context;
  thread.fiber.Resume(host_);
}

void BlockRunner::Suspend(bool for_ever) { running_->fiber.Suspend(host_, for_ever); }

void BlockRunner::ThreadMain(void* runner) {
  auto& self = *static_cast<BlockRunner*>(runner);
  self.grid_->body();
  self.End(*self.running_);
}

void BlockRunner::End(Thread& thread) {
  thread.state = State::kEnded;
  --alive_;
  Happened();
  const auto index = static_cast<std::size_t>(&thread - threads_.data());
  Warp& warp = warps_[index / 32];
  warp.absent |= 1U << thread.context.lane;
  // Other lanes may have waited for this one only.
  for (unsigned left = warp.waiting; left != 0 && !failed_;) {
    const auto lane = static_cast<std::size_t>(__builtin_ctz(left));
    const unsigned mask = threads_[index / 32 * 32 + lane].mask;
    left &= ~mask & ~(1U << lane);
    if ((mask & ~(warp.waiting | warp.absent)) == 0) CompleteMeeting(index / 32, mask);
  }
  thread.fiber.Finish(host_);
}

void BlockRunner::MakeReady(std::size_t thread) {
  threads_[thread].state = State::kReady;
  Ready(ready_end_++) = static_cast<unsigned short>(thread);
}

// Warp by warp, the lanes of each in a random order.
void BlockRunner::MakeAllReady() {
  const std::size_t warps = (count_ + 31) / 32;
  std::array<unsigned char, kThreadsMax / 32> order;
  for (std::size_t i = 0; i < warps; ++i) order[i] = static_cast<unsigned char>(i);
  if (shuffled_) random_.Shuffle(order, warps);
  for (std::size_t i = 0; i < warps; ++i) {
    // start + step * i with an odd step visits every lane once.
    const std::uint64_t random = shuffled_ ? random_.Next() : 0;
    const std::size_t start = random % 32, step = random / 32 % 16 * 2 + 1;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t thread = order[i] * std::size_t{32} + (start + step * lane) % 32;
      if (thread < count_) MakeReady(thread);
    }
  }
}

// Under a seed mostly the thread made ready last: one warp then runs as far ahead of the others as
// the barriers allow, which exposes a missing barrier.
BlockRunner::Thread& BlockRunner::TakeReady() {
  if (!shuffled_) return threads_[Ready(ready_begin_++)];
  const std::uint64_t random = random_.Next();
  if (random % 4 == 0) {
    const std::size_t any = ready_begin_ + (random >> 8) % (ready_end_ - ready_begin_);
    std::swap(Ready(any), Ready(ready_end_ - 1));
  }
  return threads_[Ready(--ready_end_)];
}

int BlockRunner::Barrier(BarrierKind kind, bool predicate, int line) {
  if (barrier_arrived_ == 0) {
    barrier_kind_ = kind;
    barrier_line_ = line;
    barrier_true_ = 0;
  }
  if (barrier_kind_ != kind || barrier_line_ != line) {
    Fault(cudaErrorLaunchFailure,
          fmt::format("block barriers of lines {} and {} meet", barrier_line_, line));
  }
  running_->state = State::kBarrier;
  running_->line = line;
  if (predicate) ++barrier_true_;
  // A thread that has ended never arrives: the others are then reported as stuck, as intended.
  if (++barrier_arrived_ == count_) {
    switch (kind) {
      case BarrierKind::kOr:
        barrier_result_ = barrier_true_ > 0;
        break;
      case BarrierKind::kAnd:
        barrier_result_ = barrier_true_ == count_;
        break;
      default:
        barrier_result_ = static_cast<int>(barrier_true_);
    }
    barrier_arrived_ = 0;
    Happened();
    MakeAllReady();
  }
  Suspend(false);
  return barrier_result_;
}

void BlockRunner::MeetWarp(unsigned mask, void* mine, CompleteWarp complete, int line) {
  Thread& me = *running_;
  const unsigned bit = 1U << me.context.lane;
  if ((mask & bit) == 0) {
    Fault(cudaErrorLaunchFailure, fmt::format("lane {} is not in its own mask {:08x}, line {}",
                                              me.context.lane, mask, line));
  }
  me.state = State::kWarp;
  me.line = line;
  me.mask = mask;
  me.argument = mine;
  me.complete = complete;
  const auto index = static_cast<std::size_t>(&me - threads_.data());
  Warp& warp = warps_[index / 32];
  warp.waiting |= bit;
  if ((mask & ~(warp.waiting | warp.absent)) == 0) CompleteMeeting(index / 32, mask);
  // When complete, the scheduler chooses which lane continues first, so the last lane yields, too.
  Suspend(failed_);
}

// Completes the rendezvous if all lanes of `mask` wait in it; returns whether it did.
bool BlockRunner::CompleteMeeting(std::size_t warp, unsigned mask) {
  Thread* const first = &threads_[warp * 32];
  void* arguments[32] = {};
  const Thread* model = nullptr;
  for (unsigned left = mask & warps_[warp].waiting; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const Thread& thread = first[lane];
    if (thread.mask != mask) return false;  // it waits for other lanes
    if (model == nullptr) model = &thread;
    if (thread.complete != model->complete || thread.line != model->line) {
      Fail(cudaErrorLaunchFailure,
           fmt::format("lanes of mask {:08x} meet in the warp operations of lines {} and {}", mask,
                       model->line, thread.line));
      return false;
    }
    arguments[lane] = thread.argument;
  }
  if (model == nullptr) return false;
  model->complete(arguments);
  if (failed_) return false;
  warps_[warp].waiting &= ~mask;
  Happened();
  const std::size_t turn = shuffled_ ? random_.Below(32) : 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t lane = (i + turn) % 32;
    if (arguments[lane] != nullptr) MakeReady(warp * 32 + lane);
  }
  return true;
}

void BlockRunner::Preempt() {
  if (!shuffled_ || random_.Next() % 8 != 0 || !HasReady()) return;
  const auto index = static_cast<std::size_t>(running_ - threads_.data());
  MakeReady(index);
  const std::size_t any = ready_begin_ + random_.Below(ready_end_ - ready_begin_);
  std::swap(Ready(any), Ready(ready_end_ - 1));
  Suspend(false);
}

unsigned BlockRunner::Poll(const unsigned* from) {
  if (Stopped()) Suspend(true);
  const unsigned value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
  if (running_->polled != from || running_->polled_value != value) {
    running_->polled = from;
    running_->polled_value = value;
    Happened();
  } else if (EverybodyIsStuck()) {
    Fault(cudaErrorLaunchTimeout,
          "waits for memory that no thread will write: all running threads only poll");
  }
  if (!HasReady()) {
    sched_yield();  // other blocks may need this core
  } else {
    // After all other threads of the block.
    const auto index = static_cast<unsigned short>(running_ - threads_.data());
    Ready(shuffled_ ? --ready_begin_ : ready_end_++) = index;
    Suspend(false);
  }
  return value;
}

// Every runner must poll without success for a round, and for a second one that begins after all
// have finished the first. A write before a block's first round is visible in the second: an event.
bool BlockRunner::EverybodyIsStuck() {
  const std::uint64_t events = grid_->events.load(std::memory_order_acquire);
  const std::uint64_t mine = stuck_.load(std::memory_order_relaxed);
  if (mine / 4 != events) {
    stuck_.store(events * 4, std::memory_order_release);
    fruitless_ = 0;
    return false;
  }
  if (++fruitless_ < 8 * alive_ + 64) return false;
  const std::uint64_t stage = mine % 4;
  for (const BlockRunner* runner : grid_->runners) {
    const std::uint64_t other = runner->stuck_.load(std::memory_order_acquire);
    if (other == kRunnerEnded) continue;
    if (other / 4 != events || other % 4 < stage) return false;
  }
  if (stage == 2) return true;
  stuck_.store(mine + 1, std::memory_order_release);
  fruitless_ = 0;
  return false;
}

void BlockRunner::Register(void* data, std::size_t data_bytes, void* guard,
                           std::size_t guard_bytes) {
  auto* const begin = static_cast<unsigned char*>(data);
  auto* const guard_begin = static_cast<unsigned char*>(guard);
  Poison(data, data_bytes);
  Poison(guard, guard_bytes);
  guards_.push_back({guard_begin, guard_begin + guard_bytes});
  static_bytes_ += data_bytes;
  if (static_bytes_ > kSharedDefault || static_bytes_ + grid_->dynamic_bytes > grid_->shared_max) {
    Fault(
        cudaErrorLaunchOutOfResources,
        fmt::format("{} bytes of static and {} of dynamic shared memory are more than a block has",
                    static_bytes_, grid_->dynamic_bytes));
  }
  if (begin < plain_.begin || begin >= plain_.end) return;
  const auto offset = static_cast<std::size_t>(begin - plain_.begin);
  const auto at =
      std::lower_bound(arrays_.begin(), arrays_.end(), offset,
                       [](const Offsets& array, std::size_t value) { return array.begin < value; });
  if (at == arrays_.end() || at->begin != offset) arrays_.insert(at, {offset, offset + data_bytes});
}

bool BlockRunner::IsBehindDynamic(const void* at, std::size_t bytes) const {
  const auto* const address = static_cast<const unsigned char*>(at);
  return address >= dynamic_shared && address < dynamic_shared + sizeof(dynamic_shared) &&
         address + bytes > dynamic_shared + grid_->dynamic_bytes;
}

std::string BlockRunner::Where() const {
  const uint3 block = block_.index;
  std::string text =
      fmt::format("kernel {}, block ({},{},{})", grid_->name, block.x, block.y, block.z);
  if (running_ != nullptr) {
    const uint3 thread = running_->context.index;
    text += fmt::format(", thread ({},{},{})", thread.x, thread.y, thread.z);
  }
  return text + ": ";
}

void BlockRunner::Fail(cudaError_t error, const std::string& text) {
  failed_ = true;
  grid_->error.store(error, std::memory_order_relaxed);
  Happened();
  Report(Where() + text);
}

// Moves the text out of the thread, whose frames are never unwound.
void BlockRunner::Fault(cudaError_t error, std::string&& text) {
  {
    const std::string taken = std::move(text);
    Fail(error, taken);
  }
  Suspend(true);
  std::abort();
}

std::string BlockRunner::Deadlock() const {
  std::map<std::string, std::size_t> groups;
  for (std::size_t i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    switch (thread.state) {
      case State::kEnded:
        ++groups["ended"];
        break;
      case State::kBarrier:
        ++groups[fmt::format("at the block barrier of line {}", thread.line)];
        break;
      default:
        ++groups[fmt::format("at the warp operation of line {} with mask {:08x}", thread.line,
                             thread.mask)];
    }
  }
  std::string text = "deadlock:";
  const char* separator = " ";
  for (const auto& [state, threads] : groups) {
    text += fmt::format("{}{} threads {}", separator, threads, state);
    separator = ", ";
  }
  return text;
}

}  // namespace emulated_cuda
