#include "app/gpu_watch.h"

#include <sys/eventfd.h>

#include <bit>
#include <string>

#include "app/fault_journal.h"

namespace simile::app {
namespace {

using backend::GpuEvent;
using backend::GpuFault;

observe::Fallback FallbackOf(GpuEvent::Kind kind) {
  switch (kind) {
    case GpuEvent::Kind::kOutOfMemory:
      return observe::Fallback::kOutOfMemory;
    case GpuEvent::Kind::kCallFailed:
      return observe::Fallback::kCallFailed;
    case GpuEvent::Kind::kDeviceLost:
      return observe::Fallback::kDeviceLost;
    case GpuEvent::Kind::kDoesNotFit:
      return observe::Fallback::kDoesNotFit;
  }
  return observe::Fallback::kCallFailed;
}

const char* MessageOf(GpuEvent::Kind kind) {
  switch (kind) {
    case GpuEvent::Kind::kOutOfMemory:
      return "the GPU had no room for a batch; the CPU answered it";
    case GpuEvent::Kind::kCallFailed:
      return "the GPU failed at something; the CPU did it";
    case GpuEvent::Kind::kDeviceLost:
      return "the GPU is lost; the CPU answers from now on";
    case GpuEvent::Kind::kDoesNotFit:
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
  const bool nobody_asks = config_.backend.preference == backend::Preference::kCpu;
  if (config_.gpu_fault_journal.empty() || nobody_asks) return {};
  absl::StatusOr<std::vector<GpuFault>> faults = ReadFaultJournal(config_.gpu_fault_journal);
  if (faults.ok()) return *std::move(faults);
  log_.Warn("the journal of GPU faults is not used",
            {{"reason", std::string(faults.status().message())}});
  return {};
}

void GpuWatch::On(const GpuEvent& event) {
  metrics_.CountFallback(FallbackOf(event.kind));
  if (event.cuda_error) metrics_.CountCudaError(*event.cuda_error);
  Log(event);
  if (event.kind == GpuEvent::Kind::kDeviceLost) OnDeviceLost(event);
}

// A device that is always full would fill the log: of each kind the 1st, 2nd, 4th, 8th, ... is
// logged.
void GpuWatch::Log(const GpuEvent& event) {
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = ++counts_[static_cast<std::size_t>(event.kind)];
  }
  if (!std::has_single_bit(count)) return;
  log_.Warn(MessageOf(event.kind), {{"reason", event.reason}, {"times", count}});
}

void GpuWatch::OnDeviceLost(const GpuEvent& event) {
  metrics_.SetBackendActive("cpu");
  if (!config_.gpu_fault_journal.empty()) {
    const absl::Status written =
        AddToFaultJournal(config_.gpu_fault_journal, {clock_.WallNow(), event.reason});
    if (!written.ok()) {
      log_.Warn("the journal of GPU faults is not written",
                {{"reason", std::string(written.message())}});
    }
  }
  if (config_.on_gpu_fault == OnGpuFault::kRestart) eventfd_write(restart_.get(), 1);
}

}  // namespace simile::app
