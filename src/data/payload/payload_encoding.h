#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "simile/payload.h"

namespace simile::data {

// How payload values are kept: as the protobuf message simile.v1.PayloadValue, so that an answer
// copies them. Written by hand, because this layer knows nothing of protobuf; payload_encoding_test
// compares it with protobuf's own. Kept in memory only, so decoding trusts it. A value is one field
// of the message:
//   null     0x08, 1
//   boolean  0x10, 0 or 1
//   integer  0x18 and a varint: 10 bytes for a negative one
//   number   0x21 and 8 bytes, binary64, little-endian
//   string   0x2a, a varint length and the bytes
//   list     0x32, the length in bytes and, for each value, 0x0a, its length and the value
//   object   0x3a, the length in bytes and, for each member, 0x0a, its length and the member: 0x0a,
//            the length of the name and the name, 0x12, the length of the value and the value
// So the first byte says where a value ends.
void AppendVarint(std::vector<std::uint8_t>& out, std::uint64_t value);
void AppendValue(std::vector<std::uint8_t>& out, const PayloadValue& value);

// Decodes a value that AppendValue has encoded.
PayloadValue DecodeValue(std::span<const std::uint8_t> value);

// A member of an encoded object. Borrows its bytes.
struct EncodedMember {
  std::string_view name;
  std::span<const std::uint8_t> value;
};

// Walks encoded bytes. Views borrow the bytes.
class PayloadCursor {
 public:
  explicit PayloadCursor(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool at_end() const { return bytes_.empty(); }

  std::uint64_t ReadVarint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = ReadByte();
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::uint8_t ReadByte() {
    assert(!bytes_.empty());
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // The bytes after a varint that says how many.
  std::span<const std::uint8_t> ReadCounted() { return ReadBytes(ReadVarint()); }
  std::span<const std::uint8_t> ReadBytes(std::size_t count) {
    assert(count <= bytes_.size());
    const std::span<const std::uint8_t> read = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return read;
  }
  // An encoded value, which is passed in one step whatever it holds.
  std::span<const std::uint8_t> ReadValueBytes();
  // The next member of an object. REQUIRES: at a member (ReadMembers).
  EncodedMember ReadMember();
  // The next element of a list. REQUIRES: at an element (EncodedList).
  std::span<const std::uint8_t> ReadElement();

 private:
  std::span<const std::uint8_t> bytes_;
};

struct EncodedList {
  PayloadCursor elements;
};
struct EncodedObject {
  PayloadCursor members;
};
// An encoded value, decoded one level deep without copies. Borrows the bytes.
using EncodedValue = std::variant<std::monostate, bool, std::int64_t, double, std::string_view,
                                  EncodedList, EncodedObject>;
EncodedValue ReadValue(std::span<const std::uint8_t> value);

// The members of an encoded value; none unless it is an object.
PayloadCursor ReadMembers(std::span<const std::uint8_t> value);

}  // namespace simile::data
