#pragma once

#include <string>

#include <absl/status/status.h>

namespace simile::cli {

// What every command but `health` exits with. A wrong command line has a code of its own (EX_USAGE
// of sysexits.h), so that a health check with a mistyped flag is not taken for an unreachable
// server.
inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 64;

// `health` only.
inline constexpr int kNotServing = 1;
inline constexpr int kUnreachable = 2;

// Prints `error: ...` to standard error and returns kFailed.
int Fail(const absl::Status& status);

// Names the command a person may want next, on standard error and only when that is a terminal.
void SuggestNext(const std::string& command);

}  // namespace simile::cli
