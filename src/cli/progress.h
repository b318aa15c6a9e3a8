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

// A line on standard error that shows how far something has come, redrawn five times a second by
// its own thread and erased by the destructor. Draws nothing if standard error is no terminal.
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

// What a change does now: `reading 1.20 GiB of 3.00 GiB, content_vectors.npy`; empty when the
// server does not say.
std::string ProgressText(const v1::ChangeProgress& progress);

// The same with its share, as a line of a log: `loading films: 40 %, reading 1.20 GiB of 3.00 GiB,
// content_vectors.npy`.
std::string ProgressLine(const std::string& label, const v1::ChangeProgress& progress);

// {"stage", "file", "share", "bytes_read", "bytes_total"}
nlohmann::ordered_json ProgressJson(const v1::ChangeProgress& progress);

// Shows on standard error how far a change has come: as a bar on a terminal, else as a line every
// few seconds, so that a log of a long load shows that it goes on. With --json the lines are JSON
// and there is no bar. Set is called by one thread.
class ChangeProgressDisplay {
 public:
  //   label  what is done, to what: "loading films"
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
