#include "service/status_mapping.h"

#include <fmt/format.h>

namespace simile::service {
namespace {

constexpr std::string_view kEllipsis = "...";

// The longest prefix within bytes_max that does not cut a UTF-8 sequence in two.
std::string_view WholeCharacters(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

bool IsInternal(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

std::string MessageForCaller(const absl::Status& status, std::string_view request_id) {
  if (IsInternal(status.code())) {
    return fmt::format("internal error; the server's log has the details under request id {}",
                       request_id);
  }
  std::string message(status.message());
  if (message.size() <= kErrorMessageBytesMax) return message;
  return std::string(WholeCharacters(message, kErrorMessageBytesMax - kEllipsis.size()))
      .append(kEllipsis);
}

}  // namespace simile::service
