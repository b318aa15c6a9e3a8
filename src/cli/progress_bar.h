#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/terminal.h"

namespace simile::cli {

// The bar without its line's start: ` |############--------| 60 %`.
std::string BarText(double fraction, std::size_t width);

// A bar on standard error while something slow runs, asked for now and then from a thread of its
// own. Shows nothing where standard error is no terminal, and wipes itself when it goes.
class ProgressBar {
 public:
  // fraction: 0..1, or nothing while it is not known. Called from the bar's thread.
  ProgressBar(std::string label, std::function<std::optional<double>()> fraction);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  void Draw();

  const std::string label_;
  const std::function<std::optional<double>()> fraction_;
  const Terminal terminal_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace simile::cli
