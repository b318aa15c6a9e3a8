#include "service/request_hash.h"

#include <cstddef>
#include <functional>
#include <string_view>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "base/split_mix.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr int kOptions = v1::SearchRequest::kOptionsFieldNumber;
static_assert(kOptions == v1::RecommendRequest::kOptionsFieldNumber);
constexpr std::uint32_t kOptionsTag =
    GOOGLE_PROTOBUF_WIRE_FORMAT_MAKE_TAG(kOptions, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);

bool IsPaging(int option) {
  return option == v1::SearchOptions::kPagedFieldNumber ||
         option == v1::SearchOptions::kPageTokenFieldNumber;
}

// Adds the fields of a serialized request, or of its options, to the hash.
void AddFields(std::string_view message, bool is_options, std::uint64_t& hash) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  std::size_t begin = 0;
  while (const std::uint32_t tag = in.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    if (!is_options && tag == kOptionsTag) {
      int bytes = 0;
      in.ReadVarintSizeAsInt(&bytes);
      const auto options = static_cast<std::size_t>(in.CurrentPosition());
      AddFields(message.substr(options, static_cast<std::size_t>(bytes)), true, hash);
      in.Skip(bytes);
    } else {
      WireFormatLite::SkipField(&in, tag);
    }
    const auto end = static_cast<std::size_t>(in.CurrentPosition());
    if (is_options ? !IsPaging(number) : tag != kOptionsTag) {
      const std::string_view field = message.substr(begin, end - begin);
      hash = base::SplitMix(hash ^ std::hash<std::string_view>()(field));
    }
    begin = end;
  }
}

}  // namespace

std::uint64_t HashRequest(const google::protobuf::MessageLite& request) {
  std::uint64_t hash = 0;
  AddFields(request.SerializeAsString(), false, hash);
  return hash;
}

}  // namespace simile::service
