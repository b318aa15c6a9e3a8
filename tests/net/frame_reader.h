#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace simile::net {

// The types and flags of HTTP/2 frames that the guard knows (RFC 9113, section 6).
enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr std::uint8_t kEndStream = 0x1;
inline constexpr std::uint8_t kEndHeaders = 0x4;
inline constexpr std::uint8_t kPadded = 0x8;

struct FrameHeader {
  std::uint32_t length = 0;  // of the payload
  FrameType type = FrameType::kData;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;

  bool Has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

// Finds the frames in the bytes of one direction of a connection, which come in pieces of any size.
// Keeps nothing of them but a part of one header. Not thread-safe.
class FrameReader {
 public:
  // Passes what the bytes hold to `visitor`, in order:
  //   bool visitor.OnHeader(const FrameHeader& header)       at the start of each frame
  //   bool visitor.OnPayload(std::span<Byte> piece)          each piece of its payload
  // and stops, returning false, when one of them returns false.
  //   Byte  std::uint8_t, const or not
  template <class Byte, class Visitor>
  bool Read(std::span<Byte> bytes, Visitor& visitor) {
    while (!bytes.empty()) {
      if (payload_left_ > 0) {
        const auto piece = bytes.first(std::min<std::size_t>(payload_left_, bytes.size()));
        payload_left_ -= static_cast<std::uint32_t>(piece.size());
        bytes = bytes.subspan(piece.size());
        if (!visitor.OnPayload(piece)) return false;
        continue;
      }
      const std::size_t taken = std::min(header_.size() - header_seen_, bytes.size());
      std::copy_n(bytes.begin(), taken,
                  header_.begin() + static_cast<std::ptrdiff_t>(header_seen_));
      header_seen_ += taken;
      bytes = bytes.subspan(taken);
      if (header_seen_ < header_.size()) break;
      header_seen_ = 0;
      const FrameHeader header = Decode();
      payload_left_ = header.length;
      if (!visitor.OnHeader(header)) return false;
    }
    return true;
  }

  // Of the frame under way, what has not been passed on.
  std::uint32_t payload_left() const { return payload_left_; }

 private:
  FrameHeader Decode() const {
    FrameHeader header;
    header.length =
        (std::uint32_t{header_[0]} << 16) | (std::uint32_t{header_[1]} << 8) | header_[2];
    header.type = static_cast<FrameType>(header_[3]);
    header.flags = header_[4];
    header.stream = (std::uint32_t{header_[5] & 0x7FU} << 24) | (std::uint32_t{header_[6]} << 16) |
                    (std::uint32_t{header_[7]} << 8) | header_[8];
    return header;
  }

  std::array<std::uint8_t, 9> header_{};
  std::size_t header_seen_ = 0;
  std::uint32_t payload_left_ = 0;
};

}  // namespace simile::net
