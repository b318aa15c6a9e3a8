#include "service/page_token.h"

#include <array>
#include <cstring>

#include <absl/strings/escaping.h>

namespace simile::service {
namespace {

// In memory order: only the server that wrote a token reads it.
using Words = std::array<std::uint64_t, 4>;

}  // namespace

std::string WritePageToken(const PageToken& token) {
  const auto loaded_at = static_cast<std::uint64_t>(token.loaded_at.time_since_epoch().count());
  const Words words{token.snapshot_version, loaded_at, token.page, token.request_hash};
  std::array<char, sizeof(Words)> bytes{};
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return absl::WebSafeBase64Escape(absl::string_view(bytes.data(), bytes.size()));
}

absl::StatusOr<PageToken> ReadPageToken(std::string_view text) {
  std::string bytes;
  Words words{};
  const bool read =
      absl::WebSafeBase64Unescape(absl::string_view(text.data(), text.size()), &bytes);
  if (!read || bytes.size() != sizeof(Words)) {
    return absl::InvalidArgumentError(
        "options.page_token: not a page token; send an answer's next_page_token unchanged, "
        "or leave it out for the first page");
  }
  std::memcpy(words.data(), bytes.data(), bytes.size());
  using std::chrono::system_clock;
  const system_clock::duration loaded_at(static_cast<system_clock::rep>(words[1]));
  return PageToken{words[0], system_clock::time_point(loaded_at), words[2], words[3]};
}

}  // namespace simile::service
