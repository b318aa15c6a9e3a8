#include "service/grpc/unknown_fields.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace simile::service {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Goes over the wire form of a message without making anything of it.
class FieldWalk {
 public:
  FieldWalk(google::protobuf::io::ZeroCopyInputStream& bytes, std::uint64_t unknown_max)
      : in_(&bytes), unknown_max_(unknown_max) {
    in_.SetRecursionLimit(kDepthMax);
  }

  // The fields up to the end of the message, or of the group of this number.
  //   type   null: none of them is known
  //   group  0 for a message
  // False when the bytes are no fields, or more are unknown than may be.
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

}  // namespace

UnknownFields CountUnknownFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                                 const Descriptor& type, std::uint64_t count_max) {
  FieldWalk walk(bytes, count_max);
  UnknownFields found;
  found.is_wire_form = walk.Fields(&type, 0);
  found.count = walk.unknown_count();
  return found;
}

}  // namespace simile::service
