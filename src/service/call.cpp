#include "service/call.h"

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::service {
namespace {

absl::Status TooLarge(std::string_view more_than, std::uint64_t bytes, std::uint64_t bytes_max,
                      std::string_view remedy) {
  return base::Error(base::ErrorReason::kReplyTooLarge,
                     fmt::format("the answer needs {}{} bytes and may have {}; {}", more_than,
                                 base::Grouped(bytes), base::Grouped(bytes_max), remedy));
}

}  // namespace

absl::Status CheckReplySize(const Reply& reply, std::uint64_t bytes_max, std::string_view remedy) {
  const std::uint64_t bytes = reply.bytes();
  if (bytes <= bytes_max) return absl::OkStatus();
  return reply.is_exact() ? TooLarge("", bytes, bytes_max, remedy)
                          : ReplyTooLargeToBuild(bytes - 1, bytes_max, remedy);
}

absl::Status ReplyTooLargeToBuild(std::uint64_t bytes_min, std::uint64_t bytes_max,
                                  std::string_view remedy) {
  return TooLarge("more than ", bytes_min, bytes_max, remedy);
}

absl::Status CallerGoneError() {
  return base::Error(base::ErrorReason::kCancelled,
                     "the caller gave up before the answer was sent");
}

absl::Status StoppingError() {
  return base::Error(base::ErrorReason::kStopping,
                     "the server is stopping; retry on another server, or later");
}

}  // namespace simile::service
