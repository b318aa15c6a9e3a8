#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace simile::net {

// Drops from the bytes of a connection the RST_STREAM frames of calls whose HEADERS never came.
// gRPC's clients send one for a call that ends before its headers are written, and the RFC has the
// server end the connection for it, with all other calls (RFC 9113, section 6.4). Not thread-safe.
class IdleResets {
 public:
  // Passes the bytes on in their order, in pieces: pass(piece). Up to eight bytes may wait for the
  // rest of a frame's header.
  // Returns how many frames were left out.
  template <class Pass>
  int Filter(std::span<const std::uint8_t> bytes, const Pass& pass) {
    int left_out = 0;
    std::size_t passed = 0;  // what lies before was passed on or left out
    const auto pass_up_to = [&](std::size_t end) {
      if (end > passed) pass(bytes.subspan(passed, end - passed));
      passed = end;
    };
    for (std::size_t at = 0; at < bytes.size();) {
      if (unread_ > 0) {
        const std::size_t count = std::min(unread_, bytes.size() - at);
        unread_ -= count;
        at += count;
        if (leaves_out_) passed = at;
        continue;
      }
      leaves_out_ = false;
      const bool is_whole = header_seen_ == 0 && bytes.size() - at >= kHeaderBytes;
      if (!is_whole) pass_up_to(at);
      const std::size_t count = std::min(kHeaderBytes - header_seen_, bytes.size() - at);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count,
                  header_.begin() + static_cast<std::ptrdiff_t>(header_seen_));
      header_seen_ += count;
      if (!is_whole) passed = at + count;
      if (header_seen_ == kHeaderBytes) {
        ReadHeader();
        if (leaves_out_) {
          if (is_whole) pass_up_to(at);
          passed = at + count;
          ++left_out;
        } else if (!is_whole) {
          pass(std::span<const std::uint8_t>(header_));
        }
      }
      at += count;
    }
    pass_up_to(bytes.size());
    return left_out;
  }

  // Whether the headers of any call came.
  bool has_call() const { return last_begun_ != 0; }

 private:
  static constexpr std::size_t kHeaderBytes = 9;
  static constexpr std::size_t kPrefaceBytes = 24;

  void ReadHeader() {
    constexpr std::uint8_t kHeaders = 1;
    constexpr std::uint8_t kRstStream = 3;
    constexpr std::size_t kResetBytes = 4;
    header_seen_ = 0;
    unread_ = (std::size_t{header_[0]} << 16) | (std::size_t{header_[1]} << 8) | header_[2];
    const std::uint32_t stream = (std::uint32_t{header_[5] & 0x7FU} << 24) |
                                 (std::uint32_t{header_[6]} << 16) |
                                 (std::uint32_t{header_[7]} << 8) | header_[8];
    if (header_[3] == kHeaders) last_begun_ = std::max(last_begun_, stream);
    leaves_out_ = header_[3] == kRstStream && unread_ == kResetBytes && stream > last_begun_ &&
                  stream % 2 == 1;
  }

  std::size_t unread_ = kPrefaceBytes;  // of the preface, or of the frame's payload
  bool leaves_out_ = false;             // this payload
  std::array<std::uint8_t, kHeaderBytes> header_{};
  std::size_t header_seen_ = 0;
  std::uint32_t last_begun_ = 0;  // the call with the highest number
};

}  // namespace simile::net
