#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

struct ReceivedFrame {
  FrameHeader header;
  std::string payload;

  bool IsWhole() const { return payload.size() == header.length; }
  bool Is(FrameType type, std::uint32_t stream) const {
    return header.type == type && header.stream == stream;
  }
  bool EndsStream(std::uint32_t stream) const {
    return Is(FrameType::kHeaders, stream) && header.Has(kEndStream);
  }
};

// Keeps the frames of one direction of a connection. Not thread-safe.
class FrameCollector {
 public:
  void Add(std::string_view bytes) {
    reader_.Read(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
                 *this);
  }
  const std::vector<ReceivedFrame>& frames() const { return frames_; }  // the last may not be whole
  // The payloads of the stream's DATA frames, joined.
  std::string JoinData(std::uint32_t stream) const {
    std::string data;
    for (const ReceivedFrame& frame : frames_) {
      if (frame.Is(FrameType::kData, stream)) data += frame.payload;
    }
    return data;
  }

  // For FrameReader::Read.
  bool OnHeader(const FrameHeader& header) {
    frames_.push_back({header, {}});
    return true;
  }
  bool OnPayload(std::span<const std::uint8_t> piece) {
    frames_.back().payload.append(piece.begin(), piece.end());
    return true;
  }

 private:
  FrameReader reader_;
  std::vector<ReceivedFrame> frames_;
};

// The number that the text is, its highest byte first.
inline std::int64_t ParseBigEndian(std::string_view text) {
  std::int64_t number = 0;
  for (const char byte : text) number = (number << 8) | static_cast<std::uint8_t>(byte);
  return number;
}

}  // namespace simile::net
