#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "backend/failover_backend.h"
#include "backend/nvml.h"
#include "base/file_descriptor.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "observe/scrape_sources.h"
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

// Reads the card's own state (load, temperature, memory, errors) for scrapes, through the driver's
// management library, which may be missing, old or hang with its card. So only threads of this
// class call the library, and a scrape waits for them only briefly. Owned by wiring; safe to use
// from any thread.
class GpuSensors {
 public:
  struct Options {
    std::string library = backend::kNvmlLibrary;
    unsigned device = 0;  // gpu.device: the label of its metrics
    // The card's place on the bus. Empty: `device` is the number of the card on the bus.
    std::string bus_id;
    // Scrapes within this time see one reading.
    std::chrono::milliseconds refresh_interval{1'000};
    // A scrape waits this long for a new reading, and then shows the last one.
    std::chrono::milliseconds scrape_wait{100};
    // A reading that is older than this is not shown.
    std::chrono::milliseconds reading_age_max{5'000};
  };

  // Starts to open the library, and to count and log the errors (Xid) that the driver reports.
  // Borrows clock and log for its lifetime.
  GpuSensors(Options options, const Clock& clock, const observe::Logger& log);
  // Leaves a thread behind that hangs in the library. The thread may go on while the process ends,
  // so the process must end without destructors of static objects.
  ~GpuSensors();
  GpuSensors(const GpuSensors&) = delete;
  GpuSensors& operator=(const GpuSensors&) = delete;

  // The metrics simile_gpu_* of the card that can be read. Empty without the library or
  // while it does not answer. Takes at most Options::scrape_wait.
  std::vector<observe::ScrapedMetric> Metrics();

 private:
  struct State;  // shared with the threads, which may outlive this

  static void ReadCard(const std::shared_ptr<State>& state);
  static void CountXids(const std::shared_ptr<State>& state);

  const Clock& clock_;
  const std::shared_ptr<State> state_;
};

// The metrics of a reading. Pure.
//   gpu  the value of the label `gpu`
std::vector<observe::ScrapedMetric> MakeGpuMetrics(const backend::GpuReading& reading,
                                                   const std::string& gpu);

}  // namespace simile::app
