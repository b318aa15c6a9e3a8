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

// The exit codes that all commands share. kWrongUsage is EX_USAGE of sysexits.h, so that a health
// check with a mistyped flag does not look like an unreachable server.
inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 64;
// The code that a shell reports for a program ended by Ctrl-C.
inline constexpr int kInterrupted = 130;

// Prints `error: ...` to standard error, and with --json the error as JSON to standard output.
// Returns kWrongUsage for a mistake in the arguments, whether this program or the server found it;
// otherwise kFailed.
int Fail(const absl::Status& status, bool json = false);

// Prints, to standard error if it is a terminal, the command that the user may want next.
void SuggestNext(const std::string& command);

// The details of a server's error for programs, besides its code and message.
struct ErrorDetails {
  // "COLLECTION_NOT_FOUND"; docs/api.md lists them. Empty for the program's own errors.
  std::string reason;
  std::string field;  // the wrong field of the request: "queries[3].k"; empty for none
  std::optional<std::int64_t> retry_after_ms;
};

// Attaches the details that a server sent.
//   rpc_status  a serialized google.rpc.Status; other bytes, or none, attach no details
absl::Status WithDetails(absl::Status status, const std::string& rpc_status);
// Attaches the reason that a server would give to an error that this program finds by itself.
absl::Status WithServersReason(absl::Status status, base::ErrorReason reason);
// The same error with a sentence after its message: `no item "x" in films. --title TEXT finds ...`.
absl::Status WithAdvice(const absl::Status& status, std::string_view advice);
ErrorDetails ParseDetails(const absl::Status& status);
ErrorDetails ParseDetails(const google::rpc::Status& status);

// Turns an error inside an answer into the status that a failed call would have.
absl::Status ToCallStatus(const google::rpc::Status& status);

// The message for people, with the time to wait if the server gives one: `the queue is full; try
// again in 40 ms`.
std::string ErrorText(const absl::Status& status);

// {"code", "reason", "field", "retry_after_ms", "message"}. Unknown values are null.
nlohmann::ordered_json ErrorObject(const absl::Status& status);
// {"error": ErrorObject} on one line, ended by '\n'.
std::string ErrorJson(const absl::Status& status);

}  // namespace simile::cli
