#pragma once

#include <string>

#include "cli/terminal.h"
#include "cli/top/interval_stats.h"

namespace simile::cli::top {

// The text that `simile top` shows for an interval: lines ended by '\n', at most as wide as the
// terminal, if it has a width. Leaves out empty sections.
//   address  of the server
std::string TopText(const IntervalStats& stats, const std::string& address,
                    const Terminal& terminal);

// The interval as one line of JSON, ended by '\n', under the names of IntervalStats; times in RFC
// 3339. Unknown values are null, and so is a percentile above the largest bound.
std::string TopJson(const IntervalStats& stats);

// The first lines_max lines. If there are more, the last line says how many are left out.
std::string FirstLines(const std::string& text, std::size_t lines_max);

}  // namespace simile::cli::top
