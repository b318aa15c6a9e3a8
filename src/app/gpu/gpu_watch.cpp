#include "app/gpu/gpu_watch.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "app/gpu/fault_journal.h"

namespace simile::app {
namespace {

using backend::GpuFault;

const char* FallbackText(FallbackCause cause) {
  switch (cause) {
    case FallbackCause::kOutOfMemory:
      return "the GPU had no memory for a batch; the CPU answered it";
    case FallbackCause::kCallFailed:
      return "a call to the GPU failed; the CPU did the work";
    case FallbackCause::kLate:
      return "the GPU did not finish a batch in time; the CPU answered it";
    case FallbackCause::kDeviceLost:
      return "the GPU is lost; the CPU answers from now on";
    case FallbackCause::kDoesNotFit:
      return "a collection does not fit on the GPU; the CPU answers for it";
  }
  return "";
}

using backend::GpuReading;
using backend::Nvml;
using observe::ScrapedMetric;

// The Xids to which NVIDIA's list gives a cause in the card, the driver or a program on the card.
// Any other Xid counts as "other".
constexpr std::array<std::uint64_t, 19> kKnownXids = {13, 31, 32, 43, 45, 48, 61, 62,  63, 64,
                                                      68, 69, 74, 79, 92, 94, 95, 119, 120};

std::string XidLabel(std::uint64_t xid) {
  return std::ranges::find(kKnownXids, xid) == kKnownXids.end() ? "other" : std::to_string(xid);
}

// The longest time until the thread that waits for Xids sees that it must end.
constexpr std::chrono::milliseconds kXidWait{100};
// The destructor waits this long for its threads: longer than kXidWait and a reading take.
constexpr std::chrono::milliseconds kEndWait{500};

}  // namespace

GpuWatch::GpuWatch(const Config& config, const Clock& clock, const observe::Logger& log,
                   observe::Metrics& metrics)
    : config_(config),
      clock_(clock),
      log_(log),
      metrics_(metrics),
      restart_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

std::vector<GpuFault> GpuWatch::EarlierFaults() const {
  const bool gpu_unused = config_.backend.preference == backend::Preference::kCpu;
  if (config_.gpu_fault_journal.empty() || gpu_unused) return {};
  absl::StatusOr<std::vector<GpuFault>> faults = ReadFaultJournal(config_.gpu_fault_journal);
  if (faults.ok()) return *std::move(faults);
  log_.Warn("the journal of GPU faults is not used",
            {{"reason", std::string(faults.status().message())}});
  return {};
}

void GpuWatch::On(const backend::GpuEvent& event) {
  metrics_.CountFallback(event.cause);
  if (event.device_error) metrics_.CountDeviceError(*event.device_error);
  Log(event);
  if (event.cause == FallbackCause::kDeviceLost) OnDeviceLost(event);
}

// Logs the 1st, 2nd, 4th, 8th, ... event of each cause, so that a device that is always full does
// not fill the log.
void GpuWatch::Log(const backend::GpuEvent& event) {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = ++counts_[static_cast<std::size_t>(event.cause)];
  }
  if (!std::has_single_bit(count)) return;
  log_.Warn(FallbackText(event.cause), {{"reason", event.reason}, {"times", count}});
}

void GpuWatch::OnDeviceLost(const backend::GpuEvent& event) {
  metrics_.SetBackendActive("cpu");
  const auto now = clock_.WallNow();
  metrics_.SetGpuLostAt(now);
  if (!config_.gpu_fault_journal.empty()) {
    const absl::Status written = AddToFaultJournal(config_.gpu_fault_journal, {now, event.reason});
    if (!written.ok()) {
      log_.Warn("the journal of GPU faults is not written",
                {{"reason", std::string(written.message())}});
    }
  }
  if (config_.on_gpu_fault == OnGpuFault::kRestart) eventfd_write(restart_.get(), 1);
}

struct GpuSensors::State {
  explicit State(Options given) : options(std::move(given)), label(std::to_string(options.device)) {
    for (const std::uint64_t xid : kKnownXids) xids.emplace_back(XidLabel(xid), 0);
    xids.emplace_back("other", 0);
  }

  void CountXid(std::uint64_t xid) {
    const std::lock_guard lock(mutex);
    if (ending) return;
    ++std::ranges::find(xids, XidLabel(xid), &std::pair<std::string, std::uint64_t>::first)->second;
    log->Warn("the driver reports an error of the GPU", {{"xid", xid}, {"gpu", label}});
  }

  const Options options;
  const std::string label;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  const observe::Logger* log = nullptr;  // not used once ending is set
  bool ending = false;
  int threads_running = 0;
  bool can_read = false;  // the library is open
  bool reading_wanted = false;
  Clock::TimePoint wanted_at;
  std::optional<GpuReading> reading;  // none after an error
  Clock::TimePoint read_at;           // when it was asked for
  bool xids_counted = false;
  std::vector<std::pair<std::string, std::uint64_t>> xids;  // by label
};

namespace {

// The number of the card in the library. Errors: NVML's.
absl::StatusOr<unsigned> FindCard(const Nvml& nvml, const GpuSensors::Options& options) {
  return options.bus_id.empty() ? options.device : nvml.IndexAt(options.bus_id);
}

}  // namespace

GpuSensors::GpuSensors(Options options, const Clock& clock, const observe::Logger& log)
    : clock_(clock), state_(std::make_shared<State>(std::move(options))) {
  state_->log = &log;
  state_->threads_running = 2;
  for (const auto run : {ReadCard, CountXids}) {
    std::thread([state = state_, run] {
      run(state);
      const std::lock_guard lock(state->mutex);
      --state->threads_running;
      state->changed.notify_all();
    }).detach();
  }
}

GpuSensors::~GpuSensors() {
  std::unique_lock lock(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, kEndWait, [this] { return state_->threads_running == 0; });
}

void GpuSensors::ReadCard(const std::shared_ptr<State>& state) {
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(state->options.library);
  if (!nvml.ok()) return;
  std::unique_lock lock(state->mutex);
  state->can_read = true;
  while (true) {
    state->changed.wait(lock, [&] { return state->ending || state->reading_wanted; });
    if (state->ending) return;
    lock.unlock();
    const absl::StatusOr<unsigned> number = FindCard(**nvml, state->options);
    absl::StatusOr<GpuReading> reading =
        number.ok() ? (*nvml)->Read(*number) : absl::StatusOr<GpuReading>(number.status());
    lock.lock();
    state->reading.reset();
    if (reading.ok()) state->reading = *std::move(reading);
    state->read_at = state->wanted_at;
    state->reading_wanted = false;
    state->changed.notify_all();
  }
}

void GpuSensors::CountXids(const std::shared_ptr<State>& state) {
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(state->options.library);
  if (!nvml.ok()) return;
  const absl::StatusOr<unsigned> number = FindCard(**nvml, state->options);
  if (!number.ok()) return;
  const absl::StatusOr<std::unique_ptr<backend::XidEvents>> events = (*nvml)->WatchXids(*number);
  if (!events.ok()) return;
  {
    const std::lock_guard lock(state->mutex);
    state->xids_counted = true;
  }
  while (true) {
    const absl::StatusOr<std::optional<std::uint64_t>> xid = (*events)->Next(kXidWait);
    if (!xid.ok()) return;  // a lost card reports nothing more
    if (*xid) state->CountXid(**xid);
    const std::lock_guard lock(state->mutex);
    if (state->ending) return;
  }
}

std::vector<ScrapedMetric> GpuSensors::Metrics() {
  const Clock::TimePoint now = clock_.Now();
  const Options& options = state_->options;
  std::unique_lock lock(state_->mutex);
  const bool is_fresh = state_->reading && now - state_->read_at < options.refresh_interval;
  // A reading that an earlier scrape still wants hangs; this scrape does not wait for it again.
  if (state_->can_read && !is_fresh && !state_->reading_wanted) {
    state_->reading_wanted = true;
    state_->wanted_at = now;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, options.scrape_wait, [this] { return !state_->reading_wanted; });
  }
  std::vector<ScrapedMetric> metrics;
  if (state_->reading && now - state_->read_at <= options.reading_age_max) {
    metrics = MakeGpuMetrics(*state_->reading, state_->label);
  }
  if (!state_->xids_counted) return metrics;
  for (const auto& [xid, count] : state_->xids) {
    metrics.push_back({.name = "simile_gpu_xid_errors_total",
                       .help = "Errors of the card that its driver reported, by Xid.",
                       .is_counter = true,
                       .labels = {{"gpu", state_->label}, {"xid", xid}},
                       .value = static_cast<double>(count)});
  }
  return metrics;
}

std::vector<ScrapedMetric> MakeGpuMetrics(const GpuReading& reading, const std::string& gpu) {
  std::vector<ScrapedMetric> metrics;
  const auto add = [&](const char* name, const char* help, const auto& value) {
    if (!value) return;
    metrics.push_back({.name = name,
                       .help = help,
                       .is_counter = false,
                       .labels = {{"gpu", gpu}},
                       .value = static_cast<double>(*value)});
  };
  add("simile_gpu_utilization_ratio", "Share of the last moments in which the card computed.",
      reading.utilization_ratio);
  add("simile_gpu_temperature_celsius", "Temperature of the card.", reading.temperature_celsius);
  add("simile_gpu_device_memory_used_bytes", "Memory of the card in use, by all processes.",
      reading.memory_used_bytes);
  add("simile_gpu_device_memory_total_bytes", "Memory of the card.", reading.memory_total_bytes);
  add("simile_gpu_power_watts", "Power that the card draws.", reading.power_watts);
  add("simile_gpu_ecc_uncorrected_errors", "Uncorrected memory errors since the driver was loaded.",
      reading.ecc_uncorrected_errors);
  if (!reading.throttle_reasons) return metrics;
  for (const backend::ThrottleReason& reason : backend::ThrottleReasons()) {
    const bool slowed = (*reading.throttle_reasons & reason.bit) != 0;
    metrics.push_back({.name = "simile_gpu_throttled",
                       .help = "1 while the card runs slower for this reason.",
                       .is_counter = false,
                       .labels = {{"gpu", gpu}, {"reason", reason.name}},
                       .value = slowed ? 1.0 : 0.0});
  }
  return metrics;
}

}  // namespace simile::app
