#include "cli/bench/live_line.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/bench/run_report.h"
#include "cli/display_text.h"

namespace simile::cli::bench {

LiveLine::LiveLine() : terminal_(StandardError()) {}

LiveLine::~LiveLine() {
  if (terminal_.is_terminal) fmt::print(stderr, "\r\x1b[K");
}

OnLive LiveLine::Drawing() {
  if (!terminal_.is_terminal) return nullptr;
  return [this](const LiveState& state) {
    fmt::print(stderr, "\r {}\x1b[K", Shortened(LiveText(state), terminal_.width - 2));
    std::fflush(stderr);
  };
}

}  // namespace simile::cli::bench
