#include "service/grpc/messages.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "base/error_detail.h"
#include "base/message_text.h"
#include "service/replies/wire_writer.h"
#include "simile/v1/search.pb.h"

namespace simile::service {
namespace {

using wire::MakeTag;
using wire::Type;

// A request with more queries is left to the library, whose memory is bounded.
constexpr std::size_t kQueriesMax = 16'384;
// So is a request that has more bytes in other fields and in queries that are not plain.
constexpr std::size_t kOtherBytesMax = kParsedAtOnceBytesMax;

// Reads wire fields. A function returns false for bytes of another form.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  // The tag of a known field has one byte. The library reads longer forms of it, too.
  // REQUIRES: not at the end.
  std::uint32_t Tag() { return *Next(); }
  // Reads a varint of up to five bytes.
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
  // Reads a length and that many bytes.
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
      case MakeTag(Packed::kFormatFieldNumber, Type::kVarint):
        if (std::exchange(has_format, true) || !in.Number(value)) return false;
        query.format = static_cast<int>(value);
        break;
      case MakeTag(Packed::kDataFieldNumber, Type::kCounted):
        if (!query.data.empty() || !in.Counted(query.data)) return false;
        break;
      case MakeTag(Packed::kAsStoredFieldNumber, Type::kVarint):
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
      case MakeTag(v1::Query::kPackedVectorFieldNumber, Type::kCounted): {
        std::string_view vector;
        read = query.data.empty() && in.Counted(vector) && ReadPackedVector(vector, query);
        break;
      }
      case MakeTag(v1::Query::kKFieldNumber, Type::kVarint):
        read = read_number(query.k);
        break;
      case MakeTag(v1::Query::kOffsetFieldNumber, Type::kVarint):
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

// Splits a request into its queries and the rest. False when it has other fields, or too many bytes
// that are not plain queries.
bool Split(std::string_view bytes, SplitRequest& request) {
  using Search = v1::SearchRequest;
  FieldReader in(bytes);
  std::size_t other_bytes = 0;
  while (!in.at_end()) {
    const std::uint32_t tag = in.Tag();
    std::string_view field;
    const bool is_query = tag == MakeTag(Search::kQueriesFieldNumber, Type::kCounted);
    if (!is_query && tag != MakeTag(Search::kCollectionFieldNumber, Type::kCounted) &&
        tag != MakeTag(Search::kOptionsFieldNumber, Type::kCounted)) {
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
  // When the library cannot parse a part, it cannot parse the whole either.
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

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Reads over the wire form of a message, and keeps nothing of it but a count.
class FieldWalk {
 public:
  FieldWalk(google::protobuf::io::ZeroCopyInputStream& bytes, std::uint64_t unknown_max)
      : in_(&bytes), unknown_max_(unknown_max) {
    in_.SetRecursionLimit(kDepthMax);
  }

  // Reads the fields up to the end of the message, or of the group of this number.
  //   type   null: no field is known
  //   group  0 for a message
  // False when the bytes are no fields, or too many fields are unknown.
  bool Fields(const Descriptor* type, int group) {
    if (!in_.IncrementRecursionDepth()) return false;
    for (;;) {
      const std::uint32_t tag = in_.ReadTag();
      if (tag == 0) break;
      if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP) {
        in_.DecrementRecursionDepth();
        return group != 0 && WireFormatLite::GetTagFieldNumber(tag) == group;
      }
      if (!Field(type, tag)) return false;
    }
    in_.DecrementRecursionDepth();
    return group == 0 && in_.ConsumedEntireMessage();
  }

  std::uint64_t unknown_count() const { return unknown_count_; }

 private:
  bool Field(const Descriptor* type, std::uint32_t tag) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const WireFormatLite::WireType wire_type = WireFormatLite::GetTagWireType(tag);
    const FieldDescriptor* const field = type == nullptr ? nullptr : Known(*type, tag);
    if (field == nullptr && ++unknown_count_ > unknown_max_) return false;
    if (wire_type == WireFormatLite::WIRETYPE_START_GROUP) {
      return number != 0 && Fields(nullptr, number);
    }
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      return Nested(*field->message_type());
    }
    return WireFormatLite::SkipField(&in_, tag);
  }

  // The field that the library reads as such; null for one that it keeps as unknown.
  static const FieldDescriptor* Known(const Descriptor& type, std::uint32_t tag) {
    const FieldDescriptor* const field =
        type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (field == nullptr) return nullptr;
    const WireFormatLite::WireType wire_type = WireFormatLite::GetTagWireType(tag);
    const bool is_packed =
        field->is_packable() && wire_type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const auto own =
        WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field->type()));
    return is_packed || wire_type == own ? field : nullptr;
  }

  bool Nested(const Descriptor& type) {
    int bytes = 0;
    if (!in_.ReadVarintSizeAsInt(&bytes)) return false;
    const int rest = in_.BytesUntilLimit();
    if (rest >= 0 && bytes > rest) return false;
    const auto limit = in_.PushLimit(bytes);
    if (!Fields(&type, 0)) return false;
    // The message may have ended with the bytes, before its own end.
    if (in_.BytesUntilLimit() != 0) return false;
    in_.PopLimit(limit);
    return true;
  }

  static constexpr int kDepthMax = 200;  // no less than the library's, which parses after this

  google::protobuf::io::CodedInputStream in_;
  const std::uint64_t unknown_max_;
  std::uint64_t unknown_count_ = 0;
};

// A message of the protobuf library as a reply.
class MessageReply final : public Reply {
 public:
  explicit MessageReply(const google::protobuf::Message& message)
      : message_(message), bytes_(message.ByteSizeLong()) {}

  std::size_t bytes() const override { return bytes_; }
  std::uint8_t* Write(std::uint8_t* out) const override {
    return message_.SerializeWithCachedSizesToArray(out);
  }

 private:
  const google::protobuf::Message& message_;
  const std::size_t bytes_;
};

// A response that is counted as long as it exists.
class CountedMessage final : public net::OutgoingMessage {
 public:
  CountedMessage(std::size_t bytes, UnsentReplies::Part counted)
      : OutgoingMessage(bytes), counted_(std::move(counted)) {}

 private:
  const UnsentReplies::Part counted_;
};

absl::StatusOr<std::shared_ptr<net::OutgoingMessage>> NewMessage(std::size_t bytes,
                                                                 const ReplyLimit& limit) {
  if (limit.unsent == nullptr || bytes <= kUncountedReplyBytes) {
    return std::make_shared<net::OutgoingMessage>(bytes);
  }
  UnsentReplies::Part counted;
  const absl::Status fits = CountUnsent(bytes, limit, counted);
  if (!fits.ok()) return fits;
  return std::make_shared<CountedMessage>(bytes, std::move(counted));
}

// Refuses a large response that would arrive after the deadline: its caller has given up by then.
// Writing and sending takes an estimated 2 ms a MiB (tests/bench/serving/hostile.py, row
// `deadlines`).
absl::Status CheckTimeToSend(std::size_t bytes, const ReplyLimit& limit) {
  constexpr std::size_t kBytesPerMs = 512U << 10;
  if (!limit.deadline || bytes <= kBytesPerMs) return absl::OkStatus();
  const std::chrono::milliseconds needed(static_cast<std::int64_t>(bytes / kBytesPerMs));
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(*limit.deadline - limit.clock->Now());
  if (needed <= left) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kDeadlineExceeded,
      fmt::format(
          "the response of {} bytes takes about {} ms to send, and the deadline {}; ask for less, "
          "or set a later deadline",
          base::Grouped(bytes), needed.count(),
          left.count() > 0 ? fmt::format("is in {} ms", left.count()) : "has passed"));
}

int IntSize(std::string_view bytes) { return static_cast<int>(bytes.size()); }

// Hands out the bytes of a message in small pieces. Before each piece it checks how much memory the
// parsed part of the message takes.
class BoundedReader final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  //   arena  of the message; null: nothing is checked
  BoundedReader(std::string_view bytes, const google::protobuf::Arena* arena)
      : in_(bytes.data(), IntSize(bytes), kPieceBytes),
        arena_(arena),
        memory_max_(ParsedBytesMax(bytes.size())) {}

  bool Next(const void** data, int* size) override {
    takes_too_much_ = arena_ != nullptr && arena_->SpaceAllocated() > memory_max_;
    return !takes_too_much_ && in_.Next(data, size);
  }
  void BackUp(int count) override { in_.BackUp(count); }
  bool Skip(int count) override { return in_.Skip(count); }
  std::int64_t ByteCount() const override { return in_.ByteCount(); }

  bool takes_too_much() const { return takes_too_much_; }

 private:
  static constexpr int kPieceBytes = 16 << 10;

  google::protobuf::io::ArrayInputStream in_;
  const google::protobuf::Arena* const arena_;
  const std::uint64_t memory_max_;
  bool takes_too_much_ = false;
};

absl::Status TakesTooMuchError(std::size_t bytes, std::uint64_t memory_max) {
  return base::Error(
      base::ErrorReason::kOutOfMemory,
      fmt::format("the {} bytes of the request take more than {} bytes of memory: it is made of "
                  "very many small parts; split it into several calls",
                  base::Grouped(bytes), base::Grouped(memory_max)));
}

// Whether a large message has few enough unknown fields. Their memory is counted nowhere. In a
// small message they take no more memory than known fields may.
// Errors: kRequestNotParsed.
absl::Status CheckUnknownFields(std::string_view bytes, const google::protobuf::Message& message) {
  google::protobuf::io::ArrayInputStream reader(bytes.data(), IntSize(bytes));
  const UnknownFields unknown =
      CountUnknownFields(reader, *message.GetDescriptor(), kUnknownFieldsMax);
  if (unknown.count > kUnknownFieldsMax) {
    return base::Error(
        base::ErrorReason::kRequestNotParsed,
        fmt::format("could not be parsed as {}: it has more than {} fields that this server does "
                    "not know; make it of the fields in this server's version of the API",
                    message.GetTypeName(), base::Grouped(kUnknownFieldsMax)));
  }
  return unknown.is_wire_form ? absl::OkStatus() : NotParsedError(message);
}

}  // namespace

absl::Status ParseRequest(std::string_view bytes, const std::shared_ptr<const void>& owner,
                          google::protobuf::Message& request, SentVectors& vectors) {
  auto* const search = dynamic_cast<v1::SearchRequest*>(&request);
  return search != nullptr && bytes.size() > kParsedAtOnceBytesMax
             ? ParseSearchRequest(bytes, owner, *search, vectors)
             : ParseMessage(bytes, request);
}

UnknownFields CountUnknownFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                                 const Descriptor& type, std::uint64_t count_max) {
  FieldWalk walk(bytes, count_max);
  UnknownFields found;
  found.is_wire_form = walk.Fields(&type, 0);
  found.count = walk.unknown_count();
  return found;
}

absl::Status NotParsedError(const google::protobuf::Message& message) {
  return base::Error(base::ErrorReason::kRequestNotParsed,
                     fmt::format("could not be parsed as {}", message.GetTypeName()));
}

std::uint64_t ParsedBytesMax(std::size_t message_bytes) {
  constexpr std::uint64_t kOfManySmallParts = 64;
  constexpr std::uint64_t kOfLargeParts = 2;
  constexpr std::uint64_t kSmallPartsMax = 20U << 20;  // 262,144 excluded ids
  return std::min(kOfManySmallParts * message_bytes,
                  kOfLargeParts * message_bytes + kSmallPartsMax) +
         kParsedAtOnceBytesMax;
}

absl::Status ParseMessage(std::string_view bytes, google::protobuf::Message& message) {
  if (bytes.size() > kParsedAtOnceBytesMax) {
    const absl::Status checked = CheckUnknownFields(bytes, message);
    if (!checked.ok()) return checked;
  }
  BoundedReader reader(bytes, message.GetArena());
  const bool parsed = message.ParseFromZeroCopyStream(&reader);
  if (reader.takes_too_much()) {
    return TakesTooMuchError(bytes.size(), ParsedBytesMax(bytes.size()));
  }
  return parsed ? absl::OkStatus() : NotParsedError(message);
}

absl::Status CountUnsent(std::uint64_t bytes, const ReplyLimit& limit, UnsentReplies::Part& part) {
  constexpr std::chrono::seconds kRetryAfter{1};
  if (limit.unsent->Hold(limit.caller, bytes, part)) return absl::OkStatus();
  return base::WithRetryAfter(
      base::Error(base::ErrorReason::kQueueFull,
                  fmt::format("replies that wait to be read leave no memory for this one: {}; read "
                              "them sooner, ask for less, or ask another server",
                              limit.unsent->Shortage(limit.caller, bytes))),
      kRetryAfter);
}

absl::StatusOr<ReplyMessage> SerializeReply(const Reply& reply, const ReplyLimit& limit) {
  absl::Status fits = CheckReplySize(reply, limit.bytes_max, limit.remedy);
  if (fits.ok()) fits = CheckTimeToSend(reply.bytes(), limit);
  if (!fits.ok()) return fits;
  const auto message = NewMessage(reply.bytes(), limit);
  if (!message.ok()) return message.status();
  std::uint8_t* const begin = (*message)->data();
  [[maybe_unused]] const std::uint8_t* const end = reply.Write(begin);
  assert(end == begin + reply.bytes());
  return *message;
}

absl::StatusOr<ReplyMessage> SerializeMessage(const google::protobuf::Message& message,
                                              const ReplyLimit& limit) {
  return SerializeReply(MessageReply(message), limit);
}

}  // namespace simile::service
