#pragma once

#include <string>

#include "cli/terminal.h"
#include "cli/top/interval_stats.h"

namespace simile::cli::top {

// What `simile top` shows of an interval: lines ended by '\n', of at most the terminal's width
// where it has one. Sections of which there is nothing to say are left out.
//   address  of the server
std::string TopText(const IntervalStats& stats, const std::string& address,
                    const Terminal& terminal);

// The same as one line of JSON, ended by '\n', under the names of IntervalStats; times in RFC 3339.
// What is not known is null, and so is a percentile above the largest bound.
std::string TopJson(const IntervalStats& stats);

// The lines that fit in this height, the last of which counts the others.
std::string FirstLines(const std::string& text, std::size_t lines_max);

}  // namespace simile::cli::top
