#include "cli/errors.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include <absl/strings/cord.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error_detail.h"
#include "base/file_descriptor.h"
#include "cli/output_text.h"
#include "cli/terminal.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace simile::cli {
namespace {

// Whether the error is a mistake in the arguments, found by this program or the server. Mistakes in
// loaded files do not count.
bool IsWrongUsage(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return false;
  // The server's reason; empty for this program's own errors.
  const std::string reason = ParseDetails(status).reason;
  const auto& files = base::InfoOf(base::ErrorReason::kInvalidFiles);
  return reason.empty() ? base::ReasonOf(status) != files.reason : reason != files.name;
}

constexpr const char* kRpcStatusKey = "type.googleapis.com/google.rpc.Status";

nlohmann::ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

// `40 ms`, `1.3 s`. Rounds up, because a call that comes too early is refused again.
std::string WaitText(std::int64_t wait_ms) {
  if (wait_ms < 1'000) return fmt::format("{} ms", wait_ms);
  const std::int64_t tenths = (wait_ms + 99) / 100;
  return fmt::format("{}.{} s", tenths / 10, tenths % 10);
}

}  // namespace

int Fail(const absl::Status& status, bool json) {
  if (json) {
    fmt::print("{}", ErrorJson(status));
    std::fflush(stdout);  // so that the message follows it
  }
  const Terminal terminal = StandardError();
  // Ignores a failed write: there is no place to report it.
  base::WriteAll(STDERR_FILENO, fmt::format("{} {}\n", Bold("error:", terminal),
                                            Printable(ErrorText(status), LineBreaks::kKept)));
  return IsWrongUsage(status) ? kWrongUsage : kFailed;
}

void SuggestNext(const std::string& command) {
  const Terminal terminal = StandardError();
  if (!terminal.is_terminal) return;
  std::fflush(stdout);  // so that the suggestion follows the answer
  base::WriteAll(STDERR_FILENO, fmt::format("{}\n", Dim("next: " + command, terminal)));
}

absl::Status WithDetails(absl::Status status, const std::string& rpc_status) {
  if (!rpc_status.empty()) status.SetPayload(kRpcStatusKey, absl::Cord(rpc_status));
  return status;
}

absl::Status WithServersReason(absl::Status status, base::ErrorReason reason) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(base::InfoOf(reason).name));
  google::rpc::Status rpc_status;
  rpc_status.add_details()->PackFrom(info);
  return WithDetails(std::move(status), rpc_status.SerializeAsString());
}

absl::Status WithAdvice(const absl::Status& status, std::string_view advice) {
  const std::string message(status.message());
  const char* const end = message.ends_with('?') || message.ends_with('.') ? "" : ".";
  return base::WithMessage(status, fmt::format("{}{} {}", message, end, advice));
}

ErrorDetails ParseDetails(const absl::Status& status) {
  const auto payload = status.GetPayload(kRpcStatusKey);
  google::rpc::Status rpc_status;
  if (!payload || !rpc_status.ParseFromString(std::string(*payload))) return {};
  return ParseDetails(rpc_status);
}

ErrorDetails ParseDetails(const google::rpc::Status& status) {
  ErrorDetails details;
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  google::rpc::RetryInfo retry;
  for (const google::protobuf::Any& detail : status.details()) {
    if (detail.UnpackTo(&info)) details.reason = info.reason();
    if (detail.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
      details.field = bad_request.field_violations(0).field();
    }
    if (detail.UnpackTo(&retry)) {
      details.retry_after_ms =
          retry.retry_delay().seconds() * 1'000 + retry.retry_delay().nanos() / 1'000'000;
    }
  }
  return details;
}

absl::Status ToCallStatus(const google::rpc::Status& status) {
  return WithDetails(absl::Status(static_cast<absl::StatusCode>(status.code()), status.message()),
                     status.SerializeAsString());
}

std::string ErrorText(const absl::Status& status) {
  std::string text(status.message());
  const std::optional<std::int64_t> wait_ms = ParseDetails(status).retry_after_ms;
  if (wait_ms) text += "; try again in " + WaitText(*wait_ms);
  return text;
}

nlohmann::ordered_json ErrorObject(const absl::Status& status) {
  const ErrorDetails details = ParseDetails(status);
  nlohmann::ordered_json error = {{"code", absl::StatusCodeToString(status.code())},
                                  {"reason", TextOrNull(details.reason)},
                                  {"field", TextOrNull(details.field)},
                                  {"retry_after_ms", nullptr},
                                  {"message", std::string(status.message())}};
  if (details.retry_after_ms) error["retry_after_ms"] = *details.retry_after_ms;
  return error;
}

std::string ErrorJson(const absl::Status& status) {
  return JsonLine({{"error", ErrorObject(status)}});
}

}  // namespace simile::cli
