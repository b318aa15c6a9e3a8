#include "data/payload/payload_encoding.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace simile::data {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

// A protobuf field's number and wire type, of simile.v1.PayloadValue.
enum ValueTag : std::uint8_t {
  kNullTag = 0x08,
  kBooleanTag = 0x10,
  kIntegerTag = 0x18,
  kNumberTag = 0x21,
  kStringTag = 0x2a,
  kListTag = 0x32,
  kObjectTag = 0x3a,
};
// Of PayloadList and PayloadObject: a value, a member.
constexpr std::uint8_t kElementTag = 0x0a;
// Of a member, which is an entry of a protobuf map.
constexpr std::uint8_t kNameTag = 0x0a;
constexpr std::uint8_t kMemberValueTag = 0x12;

std::string_view AsText(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint8_t* WriteVarint(std::uint8_t* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}
constexpr std::size_t kVarintBytesMax = 10;

void AppendText(std::vector<std::uint8_t>& out, std::uint8_t tag, std::string_view text) {
  out.push_back(tag);
  AppendVarint(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

// Appends what `append` appends, with its tag and length in front. Moves the bytes to make place
// for the length. That costs less than computing the length first, because most messages are short
// and nest at most limits.json_depth_max deep.
template <class Append>
void AppendMessage(std::vector<std::uint8_t>& out, std::uint8_t tag, Append&& append) {
  out.push_back(tag);
  const std::size_t begin = out.size();
  append();
  std::uint8_t length[kVarintBytesMax];
  std::uint8_t* const end = WriteVarint(length, out.size() - begin);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(begin), std::begin(length), end);
}

// One overload for each type of value.
struct Appender {
  std::vector<std::uint8_t>& out;

  void operator()(std::monostate) const { out.insert(out.end(), {kNullTag, 1}); }
  void operator()(bool value) const {
    out.insert(out.end(), {kBooleanTag, static_cast<std::uint8_t>(value)});
  }
  void operator()(std::int64_t value) const {
    out.push_back(kIntegerTag);
    AppendVarint(out, static_cast<std::uint64_t>(value));
  }
  void operator()(double value) const {
    out.push_back(kNumberTag);
    std::uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  void operator()(const std::string& value) const { AppendText(out, kStringTag, value); }
  void operator()(const PayloadList& list) const {
    AppendMessage(out, kListTag, [&] {
      for (const PayloadValue& value : list) {
        AppendMessage(out, kElementTag, [&] { AppendValue(out, value); });
      }
    });
  }
  void operator()(const PayloadObject& object) const {
    AppendMessage(out, kObjectTag, [&] {
      for (const PayloadMember& member : object) {
        AppendMessage(out, kElementTag, [&] {
          AppendText(out, kNameTag, member.first);
          AppendMessage(out, kMemberValueTag, [&] { AppendValue(out, member.second); });
        });
      }
    });
  }
};

double ReadNumber(PayloadCursor& cursor) {
  double value = 0;
  std::memcpy(&value, cursor.ReadBytes(sizeof value).data(), sizeof value);
  return value;
}

// One overload for each type of value.
struct Decoder {
  template <class Value>
  PayloadValue operator()(Value value) const {
    return {value};
  }
  PayloadValue operator()(std::string_view text) const { return {std::string(text)}; }
  PayloadValue operator()(EncodedList encoded) const {
    PayloadList list;
    while (!encoded.elements.at_end()) {
      list.push_back(DecodeValue(encoded.elements.ReadElement()));
    }
    return {std::move(list)};
  }
  PayloadValue operator()(EncodedObject encoded) const {
    PayloadObject object;
    while (!encoded.members.at_end()) {
      const auto [name, value] = encoded.members.ReadMember();
      object.emplace_back(std::string(name), DecodeValue(value));
    }
    return {std::move(object)};
  }
};

}  // namespace

void AppendVarint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  std::uint8_t bytes[kVarintBytesMax];
  out.insert(out.end(), std::begin(bytes), WriteVarint(bytes, value));
}

void AppendValue(std::vector<std::uint8_t>& out, const PayloadValue& value) {
  std::visit(Appender{out}, value.value);
}

PayloadValue DecodeValue(std::span<const std::uint8_t> value) {
  return std::visit(Decoder(), ReadValue(value));
}

EncodedValue ReadValue(std::span<const std::uint8_t> value) {
  PayloadCursor cursor(value);
  switch (cursor.ReadByte()) {
    case kBooleanTag:
      return cursor.ReadByte() != 0;
    case kIntegerTag:
      return static_cast<std::int64_t>(cursor.ReadVarint());
    case kNumberTag:
      return ReadNumber(cursor);
    case kStringTag:
      return AsText(cursor.ReadCounted());
    case kListTag:
      return EncodedList{PayloadCursor(cursor.ReadCounted())};
    case kObjectTag:
      return EncodedObject{PayloadCursor(cursor.ReadCounted())};
    default:
      return std::monostate();
  }
}

std::span<const std::uint8_t> PayloadCursor::ReadValueBytes() {
  PayloadCursor rest(bytes_);
  switch (rest.ReadByte()) {
    case kNumberTag:
      rest.ReadBytes(sizeof(double));
      break;
    case kStringTag:
    case kListTag:
    case kObjectTag:
      rest.ReadCounted();
      break;
    default:
      rest.ReadVarint();
      break;
  }
  return ReadBytes(bytes_.size() - rest.bytes_.size());
}

EncodedMember PayloadCursor::ReadMember() {
  ReadByte();  // kElementTag
  PayloadCursor member(ReadCounted());
  member.ReadByte();  // kNameTag
  const std::string_view name = AsText(member.ReadCounted());
  member.ReadByte();  // kMemberValueTag
  return {name, member.ReadCounted()};
}

std::span<const std::uint8_t> PayloadCursor::ReadElement() {
  ReadByte();  // kElementTag
  return ReadCounted();
}

PayloadCursor ReadMembers(std::span<const std::uint8_t> value) {
  const EncodedValue read = ReadValue(value);
  const auto* const object = std::get_if<EncodedObject>(&read);
  return object == nullptr ? PayloadCursor({}) : object->members;
}

}  // namespace simile::data
