#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

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

}  // namespace simile::net
