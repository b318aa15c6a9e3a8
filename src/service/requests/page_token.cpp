#include "service/requests/page_token.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/stable_hash.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using google::protobuf::internal::WireFormatLite;

// Fields of SearchOptions that a caller may change from page to page.
constexpr std::array<int, 7> kFreeOptions = {
    v1::SearchOptions::kPagedFieldNumber,         v1::SearchOptions::kPageTokenFieldNumber,
    v1::SearchOptions::kReplyBytesMaxFieldNumber, v1::SearchOptions::kExpectedSnapshotIdFieldNumber,
    v1::SearchOptions::kReceiptDetailFieldNumber, v1::SearchOptions::kPriorityFieldNumber,
    v1::SearchOptions::kLayoutFieldNumber};

// Adds a serialized message to the hash, without some of its fields.
void AddFields(std::string_view message, std::span<const int> left_out, base::StableHash& hash) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  std::size_t begin = 0;
  while (const std::uint32_t tag = in.ReadTag()) {
    WireFormatLite::SkipField(&in, tag);
    const auto end = static_cast<std::size_t>(in.CurrentPosition());
    if (std::ranges::find(left_out, WireFormatLite::GetTagFieldNumber(tag)) == left_out.end()) {
      hash.Add(message.substr(begin, end - begin));
    }
    begin = end;
  }
}

// Serialized messages without maps are the same everywhere: fields by number, numbers
// little-endian.
template <class Request>
std::uint64_t Hash(const Request& request) {
  // No field begins with this byte.
  constexpr std::string_view kEnd("\0", 1);
  constexpr std::array<int, 1> kOptions = {Request::kOptionsFieldNumber};
  base::StableHash hash;
  hash.Add(request.GetTypeName());
  hash.Add(kEnd);
  AddFields(request.SerializeAsString(), kOptions, hash);
  hash.Add(kEnd);
  AddFields(request.options().SerializeAsString(), kFreeOptions, hash);
  return hash.Digest64();
}

// The first byte of a token of ListCollections says the format. Text that begins with another byte
// is a token of another version, or no token.
constexpr char kCollectionFormat = '1';

// A token is base64 (web-safe, without padding) of these bytes; numbers are little-endian:
//    0  format, 1
//    1  snapshot id, 16 bytes
//   17  page
//   25  request hash
//   33  ids of the snapshots of items, 16 bytes each; zeros for an empty one
//       checksum: StableHash::Digest64 of all bytes before
// Every format ends with this checksum, so that a damaged token differs from a token of another
// format.
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

// The bytes of a token whose checksum is right; empty for other text.
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

std::uint64_t HashRequest(const v1::SearchRequest& request) { return Hash(request); }
std::uint64_t HashRequest(const v1::RecommendRequest& request) { return Hash(request); }
std::uint64_t HashRequest(const v1::ExportRequest& request) { return Hash(request); }

std::string WriteCollectionPageToken(std::string_view last_name) {
  return absl::WebSafeBase64Escape(kCollectionFormat + std::string(last_name));
}

absl::StatusOr<std::string> ReadCollectionPageToken(std::string_view token) {
  if (token.empty()) return std::string();
  std::string bytes;
  const bool decoded =
      absl::WebSafeBase64Unescape(absl::string_view(token.data(), token.size()), &bytes);
  if (decoded && bytes.size() > 1 && bytes.front() == kCollectionFormat &&
      WriteCollectionPageToken(bytes.substr(1)) == token) {
    return bytes.substr(1);
  }
  return base::Error(base::ErrorReason::kInvalidPageToken,
                     fmt::format("page_token: {} is not a token of ListCollections; send the "
                                 "next_page_token of an answer as it is",
                                 base::Quoted(token)),
                     "page_token");
}

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
