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

// An outgoing message, in one block behind its prefix. It is destroyed once the socket has taken
// it, or nobody wants it any more. A derived class may count it until then.
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

// Clients drop trailers of more than 8 KiB together; the status message is one of several trailers.
inline constexpr std::size_t kStatusMessageBytesMax = 2'048;

// Encodes the value of grpc-message: UTF-8 with %XX escapes. Cuts a long text between two
// characters, so that the value has at most kStatusMessageBytesMax bytes.
std::string PercentEncode(std::string_view text);

// Encodes bytes as the value of a "-bin" header: base64 without padding.
std::string EncodeBinaryValue(std::string_view bytes);
// Decodes the value of a "-bin" header, padded or not. Nothing for a text that is not base64.
std::optional<std::string> DecodeBinaryValue(std::string_view text);

// Parses the value of grpc-timeout: "250m" is 250 ms. A timeout of more than a day becomes a day.
// Nothing for a malformed text.
std::optional<std::chrono::nanoseconds> ParseTimeout(std::string_view text);

}  // namespace simile::net
