#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "app/config.h"
#include "backend/failover_backend.h"
#include "base/file_descriptor.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::app {

// Handles failures of the GPU: counts and logs them, writes a lost device into the fault journal
// and, if configured, requests a restart. Owned by wiring; safe to use from any thread.
class GpuWatch {
 public:
  // Borrows all of them for its lifetime.
  GpuWatch(const Config& config, const Clock& clock, const observe::Logger& log,
           observe::Metrics& metrics);

  // The faults that earlier processes wrote into the journal. A journal that cannot be read is
  // logged and counts as empty.
  std::vector<backend::GpuFault> EarlierFaults() const;

  void On(const backend::GpuEvent& event);

  // Becomes readable when a restart is requested.
  int restart_fd() const { return restart_.get(); }

 private:
  void Log(const backend::GpuEvent& event);
  void OnDeviceLost(const backend::GpuEvent& event);

  const Config& config_;
  const Clock& clock_;
  const observe::Logger& log_;
  observe::Metrics& metrics_;
  const base::FileDescriptor restart_;
  std::mutex mutex_;                                            // guards counts_
  std::array<std::uint64_t, kFallbackCauses.size()> counts_{};  // of events, by cause
};

}  // namespace simile::app
