#include "service/collection_page.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

// The first byte says the format: another one is a token of another version, or none at all.
constexpr char kFormat = '1';

}  // namespace

std::string WriteCollectionPageToken(std::string_view last_name) {
  return absl::WebSafeBase64Escape(kFormat + std::string(last_name));
}

absl::StatusOr<std::string> ReadCollectionPageToken(std::string_view token) {
  if (token.empty()) return std::string();
  std::string bytes;
  const bool decoded =
      absl::WebSafeBase64Unescape(absl::string_view(token.data(), token.size()), &bytes);
  if (decoded && bytes.size() > 1 && bytes.front() == kFormat &&
      WriteCollectionPageToken(bytes.substr(1)) == token) {
    return bytes.substr(1);
  }
  return base::Error(base::ErrorReason::kInvalidPageToken,
                     fmt::format("page_token: {} is not a token of ListCollections; send the "
                                 "next_page_token of an answer as it is",
                                 base::Quoted(token)),
                     "page_token");
}

}  // namespace simile::service
