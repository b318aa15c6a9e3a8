#include "cli/bench/card_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace simile::cli::bench {
namespace {

// What the readings of a run add up to.
struct CardTally {
  CardUse use;
  double utilization_sum = 0;
  std::uint64_t utilization_count = 0;

  void Add(const CardReading& reading) {
    use.name = reading.name;
    ++use.readings;
    use.memory_total_bytes = reading.memory_total_bytes;
    if (reading.memory_used_bytes) {
      use.memory_used_bytes_max =
          std::max(use.memory_used_bytes_max.value_or(0), *reading.memory_used_bytes);
    }
    if (!reading.utilization_ratio) return;
    utilization_sum += *reading.utilization_ratio;
    ++utilization_count;
    use.utilization_mean = utilization_sum / static_cast<double>(utilization_count);
    use.utilization_max = std::max(use.utilization_max.value_or(0), *reading.utilization_ratio);
  }
};

}  // namespace

struct CardWatch::State {
  State(CardReader given, std::chrono::milliseconds time)
      : read(std::move(given)), interval(time) {}

  // The thread's work.
  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_ending || is_measuring; });
      if (is_ending) break;
      const std::uint64_t of_run = run;
      lock.unlock();
      const absl::StatusOr<CardReading> reading = read();
      lock.lock();
      if (of_run == run) AddOutcome(reading);
      changed.notify_all();
      changed.wait_for(lock, interval, [&] { return is_ending || run != of_run || !is_measuring; });
    }
    has_ended = true;
    changed.notify_all();
  }

  void AddOutcome(const absl::StatusOr<CardReading>& reading) {
    is_read = true;
    if (reading.ok()) {
      tally.Add(*reading);
    } else {
      tally.use.why_not = std::string(reading.status().message());
    }
  }

  const CardReader read;  // used by the thread alone
  const std::chrono::milliseconds interval;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool is_ending = false;
  bool has_ended = false;
  bool is_measuring = false;
  bool is_read = false;   // in this run, with or without an answer
  std::uint64_t run = 0;  // counts them
  CardTally tally;        // of this run
};

CardWatch::CardWatch(CardReader read, std::chrono::milliseconds interval,
                     std::chrono::milliseconds end_wait)
    : state_(std::make_shared<State>(std::move(read), interval)), end_wait_(end_wait) {
  std::thread([state = state_] { state->Run(); }).detach();
}

CardWatch::~CardWatch() {
  std::unique_lock lock(state_->mutex);
  state_->is_ending = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, end_wait_, [this] { return state_->has_ended; });
}

void CardWatch::Begin() {
  const std::lock_guard lock(state_->mutex);
  state_->tally = {};
  state_->is_read = false;
  state_->is_measuring = true;
  ++state_->run;
  state_->changed.notify_all();
}

CardUse CardWatch::End() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, end_wait_, [this] { return state_->is_read; });
  state_->is_measuring = false;
  CardUse use = std::move(state_->tally.use);
  if (!state_->is_read) use.why_not = "its driver does not answer";
  if (use.readings > 0) use.why_not.clear();
  ++state_->run;  // a reading that is still under way counts for none
  state_->changed.notify_all();
  return use;
}

}  // namespace simile::cli::bench
