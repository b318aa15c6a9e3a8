#include "cli/bench/card_watch.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backend/nvml.h"
#include "cli/wire_names.h"

namespace simile::cli::bench {
namespace {

using backend::Nvml;

// The number of the card on which one of the processes computes.
absl::StatusOr<unsigned> FindUsedCard(const Nvml& nvml, const std::vector<pid_t>& processes) {
  const absl::StatusOr<unsigned> count = nvml.CountDevices();
  if (!count.ok()) return count.status();
  for (unsigned card = 0; card < *count; ++card) {
    const absl::StatusOr<std::vector<unsigned>> on_card = nvml.ProcessesOn(card);
    if (!on_card.ok()) continue;
    for (const pid_t process : processes) {
      if (std::ranges::find(*on_card, static_cast<unsigned>(process)) != on_card->end()) {
        return card;
      }
    }
  }
  if (*count == 1) return 0U;  // the driver numbers a container's processes differently
  return absl::NotFoundError(
      fmt::format("no process of the server computes on any of this machine's {} cards", *count));
}

// Reads the card of processes. Keeps the library and the card's number between readings.
class ProcessesReader {
 public:
  ProcessesReader(std::vector<pid_t> processes, std::string library)
      : processes_(std::move(processes)), library_(std::move(library)) {}

  absl::StatusOr<CardReading> Read() {
    if (processes_.empty()) {
      return absl::NotFoundError("no process of the server is known on this machine");
    }
    if (nvml_ == nullptr) {
      absl::StatusOr<std::unique_ptr<Nvml>> opened = Nvml::Open(library_);
      if (!opened.ok()) return opened.status();
      const absl::StatusOr<unsigned> card = FindUsedCard(**opened, processes_);
      if (!card.ok()) return card.status();
      nvml_ = *std::move(opened);
      card_ = *card;
    }
    absl::StatusOr<backend::GpuReading> reading = nvml_->Read(card_);
    if (!reading.ok()) return reading.status();
    return CardReading{reading->name.empty() ? fmt::format("GPU {}", card_) : reading->name,
                       reading->utilization_ratio, reading->memory_used_bytes,
                       reading->memory_total_bytes};
  }

 private:
  const std::vector<pid_t> processes_;
  const std::string library_;
  std::unique_ptr<Nvml> nvml_;
  unsigned card_ = 0;
};

std::optional<std::uint64_t> ToBytes(const v1::MetricValue& metric) {
  return static_cast<std::uint64_t>(metric.number());
}

// Sums over the readings of a run.
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

CardReader MakeProcessReader(std::vector<pid_t> processes, std::string nvml) {
  auto reader = std::make_shared<ProcessesReader>(std::move(processes), std::move(nvml));
  return [reader] { return reader->Read(); };
}

CardReader MakeMetricsReader(ReadStats stats) {
  return [stats = std::move(stats)]() -> absl::StatusOr<CardReading> {
    const absl::StatusOr<v1::GetStatsResponse> answer = stats();
    if (!answer.ok()) return answer.status();
    CardReading reading;
    for (const v1::MetricValue& metric : answer->metrics()) {
      if (metric.name() == "simile_gpu_utilization_ratio") {
        reading.utilization_ratio = metric.number();
      } else if (metric.name() == "simile_gpu_device_memory_used_bytes") {
        reading.memory_used_bytes = ToBytes(metric);
      } else if (metric.name() == "simile_gpu_device_memory_total_bytes") {
        reading.memory_total_bytes = ToBytes(metric);
      } else {
        continue;
      }
      reading.name = fmt::format("GPU {}", LabelOf(metric, "gpu"));
    }
    if (reading.name.empty()) return absl::NotFoundError("the server's metrics describe no card");
    return reading;
  };
}

CardReader ChooseReader(CardReader first, CardReader second) {
  auto chosen = std::make_shared<CardReader>();
  return [chosen, first = std::move(first),
          second = std::move(second)]() -> absl::StatusOr<CardReading> {
    if (*chosen) return (*chosen)();
    absl::StatusOr<CardReading> reading = first();
    if (reading.ok()) {
      *chosen = first;
      return reading;
    }
    const std::string reason(reading.status().message());
    reading = second();
    if (reading.ok()) {
      *chosen = second;
      return reading;
    }
    return absl::Status(reading.status().code(),
                        fmt::format("{}; {}", reason, std::string(reading.status().message())));
  };
}

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

  const CardReader read;  // used only by the thread
  const std::chrono::milliseconds interval;

  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  bool is_ending = false;
  bool has_ended = false;
  bool is_measuring = false;
  bool is_read = false;   // a reading of this run has ended, with or without a value
  std::uint64_t run = 0;  // the number of the current run
  CardTally tally;        // of the current run
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
  ++state_->run;  // a reading still in progress counts for no run
  state_->changed.notify_all();
  return use;
}

}  // namespace simile::cli::bench
