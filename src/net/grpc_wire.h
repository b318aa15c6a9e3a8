#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// How gRPC frames messages, and writes texts, bytes and times in headers (PROTOCOL-HTTP2.md of
// gRPC).
namespace simile::net {

// A message that goes out, in one block behind its prefix. Destroyed when the socket has taken it,
// or when it is not wanted any more; a derived class may count it until then.
class OutgoingMessage {
 public:
  static constexpr std::size_t kPrefixBytes = 5;

  // Throws bad_alloc. REQUIRES: less than 4 GiB.
  explicit OutgoingMessage(std::size_t bytes)
      : framed_(std::make_unique_for_overwrite<std::uint8_t[]>(kPrefixBytes + bytes)),
        size_(bytes) {
    std::uint8_t* out = framed_.get();
    *out++ = 0;  // not compressed
    for (int shift = 24; shift >= 0; shift -= 8) {
      *out++ = static_cast<std::uint8_t>(bytes >> shift);
    }
  }
  virtual ~OutgoingMessage() = default;
  OutgoingMessage(const OutgoingMessage&) = delete;
  OutgoingMessage& operator=(const OutgoingMessage&) = delete;

  // To be filled before it is sent.
  std::uint8_t* data() { return framed_.get() + kPrefixBytes; }
  const std::uint8_t* data() const { return framed_.get() + kPrefixBytes; }
  std::size_t size() const { return size_; }
  // Prefix and message.
  const std::uint8_t* framed() const { return framed_.get(); }
  std::size_t framed_size() const { return kPrefixBytes + size_; }

 private:
  const std::unique_ptr<std::uint8_t[]> framed_;
  const std::size_t size_;
};

// Clients drop trailers of more than 8 KiB, and the message is one of several.
inline constexpr std::size_t kStatusMessageBytesMax = 2'048;

// The value of grpc-message: UTF-8 with escapes. A longer text is cut between two characters, so
// that the value has at most kStatusMessageBytesMax bytes.
std::string PercentEncode(std::string_view text);

// A value of a "-bin" header: base64 without padding. And the bytes of one, padded or not; nothing
// for a text that is not base64.
std::string EncodeBinaryValue(std::string_view bytes);
std::optional<std::string> DecodeBinaryValue(std::string_view text);

// What grpc-timeout says: "250m" are 250 ms. Cut to a day. Nothing for another text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

}  // namespace simile::net
