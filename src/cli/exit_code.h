#pragma once

#include <string>

#include <absl/status/status.h>

namespace simile::cli {

// The exit codes of every command but `health`. Wrong usage is EX_USAGE of sysexits.h, so that a
// health check with a mistyped flag does not look like an unreachable server.
inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 64;

// `health` only.
inline constexpr int kNotServing = 1;
inline constexpr int kUnreachable = 2;

// Prints `error: ...` to standard error and returns kFailed.
int Fail(const absl::Status& status);

// Prints the command a user may want next to standard error, if that is a terminal.
void SuggestNext(const std::string& command);

}  // namespace simile::cli
