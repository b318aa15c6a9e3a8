#include "service/request_hash.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

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

// Adds a serialized message but for some of its fields.
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

}  // namespace

std::uint64_t HashRequest(const v1::SearchRequest& request) { return Hash(request); }
std::uint64_t HashRequest(const v1::RecommendRequest& request) { return Hash(request); }
std::uint64_t HashRequest(const v1::ExportRequest& request) { return Hash(request); }

}  // namespace simile::service
