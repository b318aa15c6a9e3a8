#include "data/payload_encoding.h"

#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

namespace simile::data {
namespace {

enum class Tag : std::uint8_t { kNull, kFalse, kTrue, kInteger, kNumber, kString, kList, kObject };

// The overhead of a protobuf field: a tag byte and a length of up to 5 bytes.
constexpr std::uint64_t kFieldOverheadBytes = 6;
// A Value that holds a scalar, inside its field: 10 bytes of varint and a tag at most.
constexpr std::uint64_t kScalarBytes = kFieldOverheadBytes + 11;

void AppendTag(std::vector<std::uint8_t>& out, Tag tag) {
  out.push_back(static_cast<std::uint8_t>(tag));
}

// One overload for each type of value.
struct Appender {
  std::vector<std::uint8_t>& out;

  void operator()(std::monostate) const { AppendTag(out, Tag::kNull); }
  void operator()(bool value) const { AppendTag(out, value ? Tag::kTrue : Tag::kFalse); }
  void operator()(std::int64_t value) const {
    AppendTag(out, Tag::kInteger);
    const auto bits = static_cast<std::uint64_t>(value);
    AppendVarint(out, (bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void operator()(double value) const {
    AppendTag(out, Tag::kNumber);
    std::uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  void operator()(const std::string& value) const {
    AppendTag(out, Tag::kString);
    AppendText(out, value);
  }
  void operator()(const PayloadList& list) const {
    AppendTag(out, Tag::kList);
    AppendVarint(out, list.size());
    for (const PayloadValue& value : list) AppendValue(out, value);
  }
  void operator()(const PayloadObject& object) const {
    AppendTag(out, Tag::kObject);
    AppendVarint(out, object.size());
    for (const auto& [name, value] : object) {
      AppendText(out, name);
      AppendValue(out, value);
    }
  }
};

}  // namespace

void AppendVarint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(value));
}

void AppendText(std::vector<std::uint8_t>& out, std::string_view text) {
  AppendVarint(out, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

void AppendValue(std::vector<std::uint8_t>& out, const PayloadValue& value) {
  std::visit(Appender{out}, value.value);
}

std::uint8_t PayloadCursor::ReadByte() {
  assert(!bytes_.empty());
  const std::uint8_t byte = bytes_.front();
  bytes_ = bytes_.subspan(1);
  return byte;
}

std::uint64_t PayloadCursor::ReadVarint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = ReadByte();
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return value;
  }
}

std::string_view PayloadCursor::ReadText() {
  const std::uint64_t length = ReadVarint();
  assert(length <= bytes_.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), length);
  bytes_ = bytes_.subspan(length);
  return text;
}

std::int64_t PayloadCursor::ReadInteger() {
  const std::uint64_t bits = ReadVarint();
  return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
}

double PayloadCursor::ReadNumber() {
  double value = 0;
  assert(bytes_.size() >= sizeof value);
  std::memcpy(&value, bytes_.data(), sizeof value);
  bytes_ = bytes_.subspan(sizeof value);
  return value;
}

PayloadValue PayloadCursor::ReadValue() {
  switch (static_cast<Tag>(ReadByte())) {
    case Tag::kNull:
      return {};
    case Tag::kFalse:
      return {false};
    case Tag::kTrue:
      return {true};
    case Tag::kInteger:
      return {ReadInteger()};
    case Tag::kNumber:
      return {ReadNumber()};
    case Tag::kString:
      return {std::string(ReadText())};
    case Tag::kList: {
      PayloadList list(ReadVarint());
      for (PayloadValue& value : list) value = ReadValue();
      return {std::move(list)};
    }
    case Tag::kObject: {
      PayloadObject object(ReadVarint());
      for (auto& [name, value] : object) {
        name = ReadText();
        value = ReadValue();
      }
      return {std::move(object)};
    }
  }
  assert(false);
  return {};
}

std::uint64_t PayloadCursor::SkipValue() {
  switch (static_cast<Tag>(ReadByte())) {
    case Tag::kNull:
    case Tag::kFalse:
    case Tag::kTrue:
      return kScalarBytes;
    case Tag::kInteger:
      ReadVarint();
      return kScalarBytes;
    case Tag::kNumber:
      ReadNumber();
      return kScalarBytes;
    case Tag::kString:
      return 2 * kFieldOverheadBytes + ReadText().size();
    case Tag::kList: {
      std::uint64_t bytes = 2 * kFieldOverheadBytes;
      for (std::uint64_t left = ReadVarint(); left > 0; --left) bytes += SkipValue();
      return bytes;
    }
    case Tag::kObject: {
      std::uint64_t bytes = 2 * kFieldOverheadBytes;
      for (std::uint64_t left = ReadVarint(); left > 0; --left) {
        bytes += 2 * kFieldOverheadBytes + ReadText().size();
        bytes += SkipValue();
      }
      return bytes;
    }
  }
  assert(false);
  return 0;
}

}  // namespace simile::data
