#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <nlohmann/json_fwd.hpp>

#include "base/error_detail.h"

namespace google::rpc {  // NOLINT(readability-identifier-naming): another project's name
class Status;
}

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

// What a server's error says to programs, besides its code and message.
struct ErrorDetails {
  // "COLLECTION_NOT_FOUND"; docs/api.md lists them. Empty for the program's own errors.
  std::string reason;
  std::string field;  // the field of the request that is wrong: "queries[3].k"; empty for none
  std::optional<std::int64_t> retry_after_ms;
};

// Attaches the details that a server sent.
//   rpc_status  a serialized google.rpc.Status; empty, or any other bytes: no details
absl::Status WithDetails(absl::Status status, const std::string& rpc_status);
// Attaches the reason that a server would give, to an error that the program finds before it asks.
absl::Status WithServersReason(absl::Status status, base::ErrorReason reason);
// The same error with a sentence after its message: `no item "x" in films. --title TEXT finds ...`.
absl::Status WithAdvice(const absl::Status& status, std::string_view advice);
ErrorDetails ParseDetails(const absl::Status& status);
ErrorDetails ParseDetails(const google::rpc::Status& status);

// An error inside an answer, as an error of a call would be.
absl::Status ToCallStatus(const google::rpc::Status& status);

// The message for people, with how long to wait where the server says so: `the queue is full; try
// again in 40 ms`.
std::string ErrorText(const absl::Status& status);

// {"code", "reason", "field", "retry_after_ms", "message"}. What the error does not say is null.
nlohmann::ordered_json ErrorObject(const absl::Status& status);
// {"error": ErrorObject} on one line, ended by '\n'.
std::string ErrorJson(const absl::Status& status);

}  // namespace simile::cli
