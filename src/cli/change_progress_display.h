#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cli/change_progress_text.h"
#include "cli/progress_bar.h"

namespace simile::cli {

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
