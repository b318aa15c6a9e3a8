#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <absl/container/inlined_vector.h>
#include <google/protobuf/io/coded_stream.h>

namespace simile::service {

// Messages in protobuf's wire format, made without message objects. A function template over a sink
// says once what a message has. It runs twice: with a ByteCounter, which finds the exact size of
// the message and of every message in it, and then with a WireWriter, which writes them.
//
//   template <class Sink>
//   void EncodeGroup(Sink& out, const Group& group) {
//     out.Text(v1::HitGroup::kKeywordFieldNumber, group.keyword);
//     for (const Hit& hit : group.hits) {
//       out.Message(v1::HitGroup::kHitsFieldNumber, [&] { EncodeHit(out, hit); });
//     }
//   }
//
// Both sinks have the same functions and get the same calls. As in proto3 a number that is 0 and a
// text that is empty are left out, except where a function says otherwise.

// What a ByteCounter has found.
struct WireSizes {
  using OfMessages = absl::InlinedVector<std::uint32_t, 24>;  // ten hits with vectors need 22

  std::uint64_t bytes = 0;  // of the whole message
  OfMessages messages;      // of each message in it, in the order in which they begin
};

namespace wire {

using google::protobuf::io::CodedOutputStream;

enum class Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kCounted = 2, kFixed32 = 5 };

// The fields of an entry of a map: protobuf gives every map these numbers.
constexpr int kKeyFieldNumber = 1;
constexpr int kValueFieldNumber = 2;

constexpr std::uint32_t MakeTag(int field, Type type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}
inline std::size_t CountedBytes(int field, std::uint64_t size) {
  return CodedOutputStream::VarintSize32(MakeTag(field, Type::kCounted)) +
         CodedOutputStream::VarintSize64(size) + size;
}
// The content of an entry, without its own tag and length.
inline std::size_t EntryBytes(std::size_t name_size, std::size_t value_size) {
  return CountedBytes(kKeyFieldNumber, name_size) + CountedBytes(kValueFieldNumber, value_size);
}
inline bool IsZero(float value) { return std::bit_cast<std::uint32_t>(value) == 0; }
inline bool IsZero(double value) { return std::bit_cast<std::uint64_t>(value) == 0; }

static_assert(std::endian::native == std::endian::little, "floats are copied as they lie");

}  // namespace wire

// Counts a message's bytes.
class ByteCounter {
 public:
  //   bytes_max  below 4 GiB. Counting may end beyond it; then the message is not written
  ByteCounter(WireSizes& sizes, std::uint64_t bytes_max) : sizes_(sizes), bytes_max_(bytes_max) {}

  // Whether to leave out the rest. Encoders ask between the parts of a long message.
  bool is_full() const { return sizes_.bytes > bytes_max_; }

  void Number(int field, std::uint64_t value) {
    if (value != 0) PresentNumber(field, value);
  }
  // For an optional field: counted also when it is 0.
  void PresentNumber(int field, std::uint64_t value) {
    sizes_.bytes +=
        wire::CodedOutputStream::VarintSize32(wire::MakeTag(field, wire::Type::kVarint)) +
        wire::CodedOutputStream::VarintSize64(value);
  }
  void Float(int field, float value) {
    if (!wire::IsZero(value)) PresentFloat(field, value);
  }
  // For an optional field: counted also when it is 0.
  void PresentFloat(int field, float value) {
    sizes_.bytes +=
        wire::CodedOutputStream::VarintSize32(wire::MakeTag(field, wire::Type::kFixed32)) +
        sizeof value;
  }
  void Double(int field, double value) {
    if (wire::IsZero(value)) return;
    sizes_.bytes +=
        wire::CodedOutputStream::VarintSize32(wire::MakeTag(field, wire::Type::kFixed64)) +
        sizeof value;
  }
  // A repeated field, packed.
  void Floats(int field, std::span<const float> values) {
    if (!values.empty()) sizes_.bytes += wire::CountedBytes(field, values.size_bytes());
  }
  void Text(int field, std::string_view text) {
    if (!text.empty()) Element(field, text);
  }
  // For a repeated field: counted also when it is empty.
  void Element(int field, std::string_view text) {
    sizes_.bytes += wire::CountedBytes(field, text.size());
  }
  // An entry of a map from names to messages.
  void Entry(int field, std::string_view name, std::span<const std::uint8_t> message) {
    sizes_.bytes += wire::CountedBytes(field, wire::EntryBytes(name.size(), message.size()));
  }
  // A message, whose fields `encode` passes to this sink. Counted also when it has no fields.
  template <class Encode>
  void Message(int field, Encode&& encode) {
    const std::size_t index = sizes_.messages.size();
    const std::uint64_t before = sizes_.bytes;
    sizes_.messages.push_back(0);
    encode();
    const std::uint64_t size = sizes_.bytes - before;
    sizes_.messages[index] = static_cast<std::uint32_t>(size);
    sizes_.bytes = before + wire::CountedBytes(field, size);
  }
  // A field of bytes from several places: `each(add)` calls add(data, size) for every piece.
  //   size  sum of the pieces
  template <class Each>
  void Pieces(int field, std::uint64_t size, Each&& /*each*/) {
    if (size > 0) sizes_.bytes += wire::CountedBytes(field, size);
  }
  // A message that is a Reply.
  template <class Reply>
  void Nested(int field, const Reply& reply) {
    sizes_.bytes += wire::CountedBytes(field, reply.bytes());
  }

 private:
  WireSizes& sizes_;
  const std::uint64_t bytes_max_;
};

// Writes a message. Functions as ByteCounter's.
class WireWriter {
 public:
  //   sizes  of the same message
  //   out    has sizes.bytes bytes
  WireWriter(const WireSizes& sizes, std::uint8_t* out)
      : next_size_(sizes.messages.begin()), out_(out) {}

  std::uint8_t* end() const { return out_; }
  static constexpr bool is_full() { return false; }

  void Number(int field, std::uint64_t value) {
    if (value != 0) PresentNumber(field, value);
  }
  void PresentNumber(int field, std::uint64_t value) {
    Tag(field, wire::Type::kVarint);
    out_ = wire::CodedOutputStream::WriteVarint64ToArray(value, out_);
  }
  void Float(int field, float value) {
    if (!wire::IsZero(value)) PresentFloat(field, value);
  }
  void PresentFloat(int field, float value) {
    Tag(field, wire::Type::kFixed32);
    Bytes(&value, sizeof value);
  }
  void Double(int field, double value) {
    if (wire::IsZero(value)) return;
    Tag(field, wire::Type::kFixed64);
    Bytes(&value, sizeof value);
  }
  void Floats(int field, std::span<const float> values) {
    if (values.empty()) return;
    Header(field, values.size_bytes());
    Bytes(values.data(), values.size_bytes());
  }
  void Text(int field, std::string_view text) {
    if (!text.empty()) Element(field, text);
  }
  void Element(int field, std::string_view text) {
    Header(field, text.size());
    Bytes(text.data(), text.size());
  }
  void Entry(int field, std::string_view name, std::span<const std::uint8_t> message) {
    Header(field, wire::EntryBytes(name.size(), message.size()));
    Element(wire::kKeyFieldNumber, name);
    Header(wire::kValueFieldNumber, message.size());
    Bytes(message.data(), message.size());
  }
  template <class Encode>
  void Message(int field, Encode&& encode) {
    const std::uint32_t size = *next_size_++;
    Header(field, size);
    [[maybe_unused]] const std::uint8_t* const begin = out_;
    encode();
    assert(out_ == begin + size);
  }
  template <class Each>
  void Pieces(int field, std::uint64_t size, Each&& each) {
    if (size == 0) return;
    Header(field, size);
    each([this](const void* bytes, std::size_t count) { Bytes(bytes, count); });
  }
  template <class Reply>
  void Nested(int field, const Reply& reply) {
    Header(field, reply.bytes());
    out_ = reply.Write(out_);
  }

 private:
  void Tag(int field, wire::Type type) {
    out_ = wire::CodedOutputStream::WriteTagToArray(wire::MakeTag(field, type), out_);
  }
  void Header(int field, std::uint64_t size) {
    Tag(field, wire::Type::kCounted);
    out_ = wire::CodedOutputStream::WriteVarint64ToArray(size, out_);
  }
  void Bytes(const void* bytes, std::size_t count) {
    if (count == 0) return;  // memcpy needs valid pointers even for 0 bytes
    std::memcpy(out_, bytes, count);
    out_ += count;
  }

  WireSizes::OfMessages::const_iterator next_size_;
  std::uint8_t* out_;
};

}  // namespace simile::service
