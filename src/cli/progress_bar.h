#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cli/terminal.h"

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

}  // namespace simile::cli
