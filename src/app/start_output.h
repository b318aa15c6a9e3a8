#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "engine/snapshots/snapshot_store.h"
#include "observe/build_info.h"
#include "observe/log.h"
#include "simile/clock.h"
#include "simile/served_by.h"

namespace simile::app {

// Reports how the server starts. To people: the lines below on standard output, errors and, on a
// terminal, the progress of a load on standard error. With a log of JSON: lines of that log and
// nothing else, so that both streams hold only JSON. A stream that nobody reads delays the start by
// a second, and its text is lost. All methods may be called from any thread.
class StartOutput {
 public:
  //   log  of the server; borrowed. This writes to it if its format is JSON
  StartOutput(observe::LogFormat format, const observe::Logger& log);
  ~StartOutput() { ClearProgress(); }
  StartOutput(const StartOutput&) = delete;
  StartOutput& operator=(const StartOutput&) = delete;

  bool draws_progress() const { return draws_progress_; }
  void DrawProgress(const std::vector<engine::CollectionStatus>& collections);
  void ClearProgress();

  void Starting(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted);
  void Loaded(const engine::Snapshot& snapshot, Clock::Duration took);
  //   metrics_address  nothing when metrics are off
  void Listening(const std::string& address, const std::optional<std::string>& metrics_address);
  void Failed(const absl::Status& status);

 private:
  void PrintLines(const std::string& lines);
  // REQUIRES for Print, Wipe and DrawOver: mutex_ is held.
  void Print(int stream, const std::string& text);
  void Wipe();
  // Writes what the terminal takes at once. A stopped terminal takes nothing.
  void DrawOver(std::string_view text);

  const bool json_;
  const bool draws_progress_;
  const observe::Logger& log_;
  std::mutex mutex_;  // guards what follows and the terminal's last line
  bool drawn_ = false;
  bool is_unread_ = false;      // a stream took nothing for a second: none is waited for again
  bool is_bar_unread_ = false;  // the terminal is stopped: no progress is drawn again
};

// The lines that `serve` prints when it starts. Pure.

// `simile 0.1.0  cpu engine (scan-avx2 on AMD EPYC 9B14, 2 threads): no NVIDIA driver ...; `simile
// doctor` explains`, the end only where a GPU was wanted
// `simile 0.1.0  gpu engine (fp16-sm90 on NVIDIA H200): NVIDIA H200 (139 GiB), CUDA 13.0`
//   gpu_wanted  the configuration does not ask for the CPU
std::string BackendLine(const observe::BuildInfo& build, const ServedBy& backend, bool gpu_wanted);

// `films     5,000 vectors x 384 (cosine)  500 users  9.5 MiB resident  ready in 0.21 s`, followed
// by a line for each of the dataset's notes.
std::string CollectionLines(const engine::Snapshot& snapshot, Clock::Duration took);

// `listening on 127.0.0.1:50051, metrics on 127.0.0.1:9464`
std::string ListeningLine(std::string_view address,
                          const std::optional<std::string>& metrics_address);

// `loading films, 60 %` for the first collection that is loading; else empty.
std::string LoadingText(const std::vector<engine::CollectionStatus>& collections);

// `books, users` for the collections whose load failed; empty for none.
std::string FailedCollections(const std::vector<engine::CollectionStatus>& collections);

// `films |############--------| 60 %` for the first collection that is loading; else empty.
std::string ProgressText(const std::vector<engine::CollectionStatus>& collections);

}  // namespace simile::app
