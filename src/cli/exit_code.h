#pragma once

#include <string>

#include <absl/status/status.h>

namespace simile::cli {

// The exit codes of every command but `health`. Wrong usage is EX_USAGE of sysexits.h, so that a
// health check with a mistyped flag does not look like an unreachable server.
inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 64;
inline constexpr int kInterrupted = 130;  // as a shell reports a program that Ctrl-C ended

// Prints `error: ...` to standard error, and with --json the error as JSON to standard output.
// Returns kWrongUsage for a mistake in the arguments, also one that the server found, else kFailed.
int Fail(const absl::Status& status, bool json = false);

// Prints the command a user may want next to standard error, if that is a terminal.
void SuggestNext(const std::string& command);

}  // namespace simile::cli
