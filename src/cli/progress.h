#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// The bar alone: `|############--------| 60 %`.
std::string BarText(double fraction, std::size_t width);

// A progress line on standard error. Its own thread redraws it five times a second; the destructor
// erases it. Draws nothing if standard error is not a terminal.
class ProgressBar {
 public:
  //   line  returns the text to draw; called on the bar's thread
  explicit ProgressBar(std::function<std::string()> line);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void Draw();

  const std::function<std::string()> line_;
  const Terminal terminal_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

// The current step of a change: `reading 1.20 GiB of 3.00 GiB, content_vectors.npy`; empty if the
// server does not say.
std::string ProgressText(const v1::ChangeProgress& progress);

// The label, the share that is done and the current step, as a log line: `loading films: 40 %,
// reading 1.20 GiB of 3.00 GiB, content_vectors.npy`.
std::string ProgressLine(const std::string& label, const v1::ChangeProgress& progress);

// {"stage", "file", "share", "bytes_read", "bytes_total"}
nlohmann::ordered_json ProgressJson(const v1::ChangeProgress& progress);

// Shows the progress of a change on standard error: a bar on a terminal, otherwise a line every few
// seconds, so that a log shows that a long load goes on. With --json there is no bar and the lines
// are JSON. Set is called by one thread.
class ChangeProgressDisplay {
 public:
  //   label  what happens to which collection: "loading films"
  ChangeProgressDisplay(std::string label, bool json);

  void Set(const v1::ChangeProgress& progress);

 private:
  std::string BarLine();

  const std::string label_;
  const bool json_;
  std::chrono::steady_clock::time_point next_line_at_;
  std::mutex mutex_;  // guards progress_, which the bar's thread reads
  std::optional<v1::ChangeProgress> progress_;
  std::unique_ptr<ProgressBar> bar_;  // null without a terminal; destroyed first
};

}  // namespace simile::cli
