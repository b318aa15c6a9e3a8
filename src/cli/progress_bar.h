#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/terminal.h"

namespace simile::cli {

// The bar without its label: `|############--------| 60 %`.
std::string BarText(double fraction, std::size_t width);

// A progress bar on standard error, redrawn five times a second by its own thread and erased by the
// destructor. Draws nothing if standard error is no terminal.
class ProgressBar {
 public:
  //   fraction  returns 0..1, or nullopt while unknown; called on the bar's thread
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
