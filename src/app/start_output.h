#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>

#include "engine/snapshots/snapshot_store.h"
#include "observe/build_info.h"
#include "observe/log.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::app {

// Reports how the server starts. To people: the lines of first_lines.h on standard output, errors
// and, on a terminal, the progress of a load on standard error. With a log of JSON: lines of that
// log and nothing else, so that both streams hold only JSON. All methods may be called from any
// thread.
class StartOutput {
 public:
  //   options  of the server's log, which this writes to if it is JSON
  explicit StartOutput(const observe::Logger::Options& options);
  ~StartOutput() { ClearProgress(); }
  StartOutput(const StartOutput&) = delete;
  StartOutput& operator=(const StartOutput&) = delete;

  const observe::Logger& log() const { return log_; }
  bool draws_progress() const { return draws_progress_; }
  void DrawProgress(const std::vector<engine::CollectionStatus>& collections);
  void ClearProgress();

  void Starting(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted);
  void Loaded(const engine::Snapshot& snapshot, Clock::Duration took);
  //   metrics_address  nothing when metrics are off
  void Listening(const std::string& address, const std::optional<std::string>& metrics_address);
  void Failed(const absl::Status& status);

 private:
  void Print(const std::string& lines);
  void Wipe();  // REQUIRES: mutex_ is held

  const bool json_;
  const bool draws_progress_;
  const observe::Logger log_;
  std::mutex mutex_;  // guards drawn_ and the terminal's last line
  bool drawn_ = false;
};

}  // namespace simile::app
