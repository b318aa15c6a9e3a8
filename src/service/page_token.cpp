#include "service/page_token.h"

#include <cassert>
#include <cstddef>

#include <absl/strings/escaping.h>

#include "base/error_detail.h"
#include "base/stable_hash.h"

namespace simile::service {
namespace {

// A token is base64 (web-safe, without padding) of these bytes; numbers are little-endian:
//    0  format, 1
//    1  snapshot id, 16 bytes
//   17  page
//   25  request hash
//   33  ids of the snapshots of items, 16 bytes each; zeros for an empty one
//       checksum: StableHash::Digest64 of all bytes before
// Every format ends with such a checksum, so that a damaged token is told from one of another
// format.
constexpr std::uint8_t kTokenFormat = 1;
constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kIdAt = 1;
constexpr std::size_t kPageAt = kIdAt + kIdBytes;
constexpr std::size_t kRequestAt = kPageAt + sizeof(std::uint64_t);
constexpr std::size_t kItemsAt = kRequestAt + sizeof(std::uint64_t);

void AppendNumber(std::uint64_t number, std::string& bytes) {
  const auto little_endian = base::LittleEndian(number);
  bytes.append(little_endian.data(), little_endian.size());
}

std::uint64_t NumberAt(std::string_view bytes, std::size_t begin) {
  std::uint64_t number = 0;
  for (std::size_t i = sizeof(number); i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[begin + i]);
  }
  return number;
}

void AppendId(const std::string& id, std::string& bytes) {
  bytes += id.empty() ? std::string(kIdBytes, '\0') : std::string(absl::HexStringToBytes(id));
}

std::string IdAt(const std::string& bytes, std::size_t begin) {
  const std::string id = bytes.substr(begin, kIdBytes);
  return id == std::string(kIdBytes, '\0') ? std::string() : absl::BytesToHexString(id);
}

std::uint64_t Checksum(std::string_view bytes) {
  base::StableHash hash;
  hash.Add(bytes);
  return hash.Digest64();
}

absl::Status RefuseToken(std::string_view why) {
  return base::Error(base::ErrorReason::kInvalidPageToken, why, "options.page_token");
}

// The bytes of a token that is whole; empty for other text.
std::string WholeToken(std::string_view text) {
  std::string bytes;
  const absl::string_view escaped(text.data(), text.size());
  // Base64 has several texts for the same bytes; only that of WritePageToken is a token.
  if (!absl::WebSafeBase64Unescape(escaped, &bytes) ||
      absl::WebSafeBase64Escape(bytes) != escaped || bytes.size() <= sizeof(std::uint64_t)) {
    return {};
  }
  const std::size_t checksum_at = bytes.size() - sizeof(std::uint64_t);
  const bool is_whole =
      Checksum(std::string_view(bytes).substr(0, checksum_at)) == NumberAt(bytes, checksum_at);
  return is_whole ? bytes : std::string();
}

}  // namespace

std::string WritePageToken(const PageToken& token) {
  std::string bytes(1, static_cast<char>(kTokenFormat));
  AppendId(token.snapshot_id, bytes);
  assert(bytes.size() == kPageAt);
  AppendNumber(token.page, bytes);
  AppendNumber(token.request_hash, bytes);
  for (const std::string& id : token.item_snapshot_ids) AppendId(id, bytes);
  AppendNumber(Checksum(bytes), bytes);
  return absl::WebSafeBase64Escape(bytes);
}

absl::StatusOr<PageToken> ReadPageToken(std::string_view text) {
  const std::string bytes = WholeToken(text);
  if (bytes.empty()) {
    return RefuseToken(
        "options.page_token: not a page token; send an answer's next_page_token unchanged, or "
        "leave it out for the first page");
  }
  constexpr std::size_t kBytesMin = kItemsAt + sizeof(std::uint64_t);
  if (static_cast<std::uint8_t>(bytes[0]) != kTokenFormat || bytes.size() < kBytesMin ||
      (bytes.size() - kBytesMin) % kIdBytes != 0) {
    return RefuseToken(
        "options.page_token: a server of another version wrote it, in a format that this one does "
        "not read; start again with the first page");
  }
  PageToken token{.snapshot_id = IdAt(bytes, kIdAt),
                  .page = NumberAt(bytes, kPageAt),
                  .request_hash = NumberAt(bytes, kRequestAt)};
  const std::size_t checksum_at = bytes.size() - sizeof(std::uint64_t);
  for (std::size_t at = kItemsAt; at < checksum_at; at += kIdBytes) {
    token.item_snapshot_ids.push_back(IdAt(bytes, at));
  }
  return token;
}

}  // namespace simile::service
