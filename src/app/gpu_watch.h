#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "app/config.h"
#include "backend/failover_backend.h"
#include "backend/gpu_faults.h"
#include "data/file_descriptor.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::app {

// What the server makes of a GPU that does not do what it is asked: counts it, logs it, writes a
// lost device into the fault journal and, where the configuration says so, asks for a restart.
// Owned by wiring; safe to use from any thread.
class GpuWatch {
 public:
  // All borrowed for its life.
  GpuWatch(const Config& config, const Clock& clock, const observe::Logger& log,
           observe::Metrics& metrics);

  // What the journal holds of earlier processes. A journal that cannot be read costs a line in the
  // log and never the start.
  std::vector<backend::GpuFault> EarlierFaults() const;

  void On(const backend::GpuEvent& event);

  // Readable from the moment that a restart is wanted.
  int restart_fd() const { return restart_.get(); }

 private:
  void Log(const backend::GpuEvent& event);
  void OnDeviceLost(const backend::GpuEvent& event);

  const Config& config_;
  const Clock& clock_;
  const observe::Logger& log_;
  observe::Metrics& metrics_;
  const data::FileDescriptor restart_;
  std::mutex mutex_;                       // guards counts_
  std::array<std::uint64_t, 4> counts_{};  // of events, by kind
};

}  // namespace simile::app
