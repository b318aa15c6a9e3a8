#include "service/grpc/search_request_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "service/grpc/messages.h"
#include "service/grpc/unknown_fields.h"
#include "service/wire_writer.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using wire::TagOf;
using wire::Type;

// A request with more queries is left to the library, whose memory is bounded.
constexpr std::size_t kQueriesMax = 16'384;
// So is a request with more bytes in other fields and in queries that are not plain.
constexpr std::size_t kOtherBytesMax = kParsedAtOnceBytesMax;

// Reads wire fields. A function returns false for bytes of another form.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  // The tag of a known field has one byte. The library reads longer forms of it, too.
  // REQUIRES: not at the end.
  std::uint32_t Tag() { return *Next(); }
  // Of up to five bytes.
  bool Number(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const std::optional<std::uint8_t> byte = Next();
      if (!byte) return false;
      value |= std::uint64_t{*byte & 0x7FU} << shift;
      if (*byte < 0x80) return true;
    }
    return false;
  }
  bool Counted(std::string_view& bytes) {
    std::uint64_t size = 0;
    if (!Number(size) || size > rest_.size()) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::optional<std::uint8_t> Next() {
    if (rest_.empty()) return std::nullopt;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  std::string_view rest_;
};

// A query with only a packed vector, k and offset, each at most once.
struct PlainQuery {
  int format = 0;
  bool as_stored = false;
  std::string_view data;
  std::optional<std::uint32_t> k;
  std::optional<std::uint32_t> offset;
};

bool ReadPackedVector(std::string_view bytes, PlainQuery& query) {
  using Packed = v1::PackedVector;
  FieldReader in(bytes);
  bool has_format = false;
  bool has_as_stored = false;
  while (!in.at_end()) {
    std::uint64_t value = 0;
    switch (in.Tag()) {
      case TagOf(Packed::kFormatFieldNumber, Type::kVarint):
        if (std::exchange(has_format, true) || !in.Number(value)) return false;
        query.format = static_cast<int>(value);
        break;
      case TagOf(Packed::kDataFieldNumber, Type::kCounted):
        if (!query.data.empty() || !in.Counted(query.data)) return false;
        break;
      case TagOf(Packed::kAsStoredFieldNumber, Type::kVarint):
        if (std::exchange(has_as_stored, true) || !in.Number(value)) return false;
        query.as_stored = value != 0;
        break;
      default:
        return false;
    }
  }
  return !query.data.empty();
}

// Returns nothing unless the query is plain.
std::optional<PlainQuery> ReadPlainQuery(std::string_view bytes) {
  PlainQuery query;
  FieldReader in(bytes);
  const auto read_number = [&](std::optional<std::uint32_t>& number) {
    std::uint64_t value = 0;
    if (number || !in.Number(value)) return false;
    number = static_cast<std::uint32_t>(value);
    return true;
  };
  while (!in.at_end()) {
    bool read = false;
    switch (in.Tag()) {
      case TagOf(v1::Query::kPackedVectorFieldNumber, Type::kCounted): {
        std::string_view vector;
        read = query.data.empty() && in.Counted(vector) && ReadPackedVector(vector, query);
        break;
      }
      case TagOf(v1::Query::kKFieldNumber, Type::kVarint):
        read = read_number(query.k);
        break;
      case TagOf(v1::Query::kOffsetFieldNumber, Type::kVarint):
        read = read_number(query.offset);
        break;
      default:
        break;
    }
    if (!read) return std::nullopt;
  }
  if (query.data.empty()) return std::nullopt;
  return query;
}

void Fill(const PlainQuery& plain, v1::Query& query) {
  v1::PackedVector& vector = *query.mutable_packed_vector();
  vector.set_format(static_cast<v1::PackedVector::Format>(plain.format));
  vector.set_as_stored(plain.as_stored);
  if (plain.k) query.set_k(*plain.k);
  if (plain.offset) query.set_offset(*plain.offset);
}

// A query, plain or as its bytes.
struct ReadQuery {
  std::optional<PlainQuery> plain;
  std::string_view bytes;  // when it is not plain
};
struct SplitRequest {
  std::vector<ReadQuery> queries;
  std::string rest;  // the request's other fields, as a message of its own
};

void AppendField(std::uint32_t tag, std::string_view field, std::string& out) {
  out.push_back(static_cast<char>(tag));
  std::uint64_t size = field.size();
  for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  out.append(field);
}

// False for a request that is not made of this reader's fields, or of mostly plain queries.
bool Split(std::string_view bytes, SplitRequest& request) {
  using Search = v1::SearchRequest;
  FieldReader in(bytes);
  std::size_t other_bytes = 0;
  while (!in.at_end()) {
    const std::uint32_t tag = in.Tag();
    std::string_view field;
    const bool is_query = tag == TagOf(Search::kQueriesFieldNumber, Type::kCounted);
    if (!is_query && tag != TagOf(Search::kCollectionFieldNumber, Type::kCounted) &&
        tag != TagOf(Search::kOptionsFieldNumber, Type::kCounted)) {
      return false;
    }
    if (!in.Counted(field) || request.queries.size() == kQueriesMax) return false;
    ReadQuery query;
    if (is_query) query.plain = ReadPlainQuery(field);
    if (!query.plain && (other_bytes += field.size()) > kOtherBytesMax) return false;
    if (!is_query) {
      AppendField(tag, field, request.rest);
      continue;
    }
    if (!query.plain) query.bytes = field;
    request.queries.push_back(query);
  }
  return true;
}

// Whether the type knows every field. A message of other fields is left to the library as a whole.
bool IsOfKnownFields(std::string_view bytes, const google::protobuf::Message& type) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  const UnknownFields found = CountUnknownFields(in, *type.GetDescriptor(), 0);
  return found.is_wire_form && found.count == 0;
}

bool IsOfKnownFields(const SplitRequest& request) {
  return IsOfKnownFields(request.rest, v1::SearchRequest::default_instance()) &&
         std::ranges::all_of(request.queries, [](const ReadQuery& query) {
           return query.plain || IsOfKnownFields(query.bytes, v1::Query::default_instance());
         });
}

bool Parse(std::string_view bytes, google::protobuf::Message& message) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

absl::Status ParseSearchRequest(std::string_view bytes, const std::shared_ptr<const void>& owner,
                                v1::SearchRequest& request, SentVectors& vectors) {
  SplitRequest split;
  if (!Split(bytes, split) || !IsOfKnownFields(split)) return ParseMessage(bytes, request);
  // What the library cannot parse of a part, it cannot parse of the whole.
  if (!Parse(split.rest, request)) return NotParsedError(request);
  std::vector<std::string_view> data;
  data.reserve(split.queries.size());
  request.mutable_queries()->Reserve(static_cast<int>(split.queries.size()));
  for (const ReadQuery& query : split.queries) {
    v1::Query& message = *request.add_queries();
    if (query.plain) {
      Fill(*query.plain, message);
    } else if (!Parse(query.bytes, message)) {
      return NotParsedError(request);
    }
    data.push_back(query.plain ? query.plain->data : std::string_view());
  }
  vectors = SentVectors(std::move(data), owner, bytes.size());
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseRequest(std::string_view bytes, const std::shared_ptr<const void>& owner,
                          google::protobuf::Message& request, SentVectors& vectors) {
  auto* const search = dynamic_cast<v1::SearchRequest*>(&request);
  return search != nullptr && bytes.size() > kParsedAtOnceBytesMax
             ? ParseSearchRequest(bytes, owner, *search, vectors)
             : ParseMessage(bytes, request);
}

}  // namespace simile::service
