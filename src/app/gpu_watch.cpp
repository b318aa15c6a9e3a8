#include "app/gpu_watch.h"

#include <sys/eventfd.h>

#include <bit>
#include <string>

#include "app/fault_journal.h"

namespace simile::app {
namespace {

using backend::GpuFault;

const char* MessageOf(FallbackCause cause) {
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
  log_.Warn(MessageOf(event.cause), {{"reason", event.reason}, {"times", count}});
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

}  // namespace simile::app
