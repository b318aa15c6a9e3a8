#pragma once

#include "cli/bench/load_run.h"
#include "cli/terminal.h"

namespace simile::cli::bench {

// A line on standard error that is redrawn while a run goes on, and erased by the destructor. Draws
// nothing when standard error is no terminal.
class LiveLine {
 public:
  LiveLine();
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // To pass to RunLoad; null without a terminal. Valid as long as this is.
  OnLive Drawing();

 private:
  const Terminal terminal_;
};

}  // namespace simile::cli::bench
