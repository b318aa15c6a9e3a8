#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string_view>

#include <nghttp2/nghttp2.h>

#include "net/token_bucket.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "simile/clock.h"

namespace simile::net {

// Why a connection is cut.
enum class Violation : std::uint8_t {
  kNone,
  kNotHttp2,
  kResets,
  kHeaderBytes,
  kPings,
  kSettings,
  kPriorities,
  kWindowUpdates,
  kEmptyData,
  kUnknownFrames,
  kProtocol,
  kMemory,
};
// "begins and resets calls too often"
std::string_view ViolationText(Violation violation);

// Counts and logs connections that are cut: at most ten lines a second. Any thread.
class CutReports {
 public:
  CutReports(const Clock& clock, observe::Metrics& metrics, const observe::Logger& log);
  void Report(Violation violation) noexcept;

 private:
  const Clock& clock_;
  observe::Metrics& metrics_;
  const observe::Logger& log_;
  std::mutex mutex_;  // guards the members below
  TokenBucket lines_;
  std::uint64_t lines_left_out_ = 0;
};

// Limits how often a peer may send each kind of frame on one connection. A peer may send more PING
// and WINDOW_UPDATE frames for each HEADERS or DATA frame that it gets: clients measure bandwidth
// by pings, and report what they have read. Not thread-safe.
class FrameRates {
 public:
  //   clock  borrowed
  explicit FrameRates(const Clock& clock)
      : clock_(clock),
        kinds_{
            {{NGHTTP2_PING, 1, Violation::kPings, {{1'000, 100}, clock.Now()}},
             {NGHTTP2_SETTINGS, 0, Violation::kSettings, {{200, 50}, clock.Now()}},
             {NGHTTP2_PRIORITY, 0, Violation::kPriorities, {{1'000, 100}, clock.Now()}},
             {NGHTTP2_WINDOW_UPDATE, 2, Violation::kWindowUpdates, {{10'000, 1'000}, clock.Now()}},
             {kOtherType, 0, Violation::kUnknownFrames, {{100, 10}, clock.Now()}}}} {}

  // Counts a frame of this type that came. Returns kNone, or the violation when the peer sends too
  // many.
  Violation Count(std::uint8_t type) {
    Kind& kind = *std::ranges::find(kinds_.begin(), kinds_.end() - 1, type, &Kind::type);
    return kind.bucket.Spend(clock_) ? Violation::kNone : kind.violation;
  }
  // The server sent HEADERS or DATA, which the peer may answer.
  void OnFrameSent() {
    for (Kind& kind : kinds_) {
      if (kind.by_frame > 0) kind.bucket.Give(kind.by_frame);
    }
  }

 private:
  static constexpr std::uint8_t kOtherType = 0xff;
  struct Kind {
    std::uint8_t type;
    double by_frame;
    Violation violation;
    TokenBucket bucket;
  };

  const Clock& clock_;
  std::array<Kind, 5> kinds_;  // the last is for all other types
};

// Drops from the bytes of a connection the RST_STREAM frames of calls whose HEADERS never came.
// gRPC's clients send such a frame for a call that ends before its headers are written. By the RFC
// the server would end the connection with all other calls (RFC 9113, section 6.4). Not
// thread-safe.
class IdleResets {
 public:
  // Passes the bytes on in their order, in pieces: pass(piece). Up to eight bytes may wait for the
  // rest of a frame's header.
  // Returns how many frames were left out.
  template <class Pass>
  int Filter(std::span<const std::uint8_t> bytes, const Pass& pass) {
    int left_out = 0;
    std::size_t passed = 0;  // bytes before it were passed on or left out
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

struct FreeMemory {
  void operator()(void* memory) const { ::operator delete(memory); }
};

// Memory of nghttp2, counted by connection. An allocation beyond the limit fails, which ends the
// connection. When the process has no memory, nghttp2 gets the connection's spare block, so that an
// answer can still be sent. Each block has its size in front of it.
inline constexpr std::size_t kSizeBytes = alignof(std::max_align_t);
inline constexpr std::size_t kSpareBytes = 8U << 10;

struct CountedMemory {
  std::uint64_t used = 0;
  std::uint64_t most = 0;
  std::unique_ptr<void, FreeMemory> spare;

  static std::size_t& BlockSize(void* block) {
    return *reinterpret_cast<std::size_t*>(static_cast<std::byte*>(block) - kSizeBytes);
  }
  void* Allocate(std::size_t size) {
    if (size > most || used > most - size) return nullptr;
    void* begin = ::operator new(kSizeBytes + size, std::nothrow);
    if (begin == nullptr && kSizeBytes + size <= kSpareBytes) begin = spare.release();
    if (begin == nullptr) return nullptr;
    used += size;
    void* const block = static_cast<std::byte*>(begin) + kSizeBytes;
    BlockSize(block) = size;
    return block;
  }
  void Free(void* block) {
    if (block == nullptr) return;
    used -= BlockSize(block);
    ::operator delete(static_cast<std::byte*>(block) - kSizeBytes);
  }
  void* Reallocate(void* block, std::size_t size) {
    void* const larger = Allocate(size);
    if (larger == nullptr || block == nullptr) return larger;
    std::memcpy(larger, block, std::min(size, BlockSize(block)));
    Free(block);
    return larger;
  }
};

}  // namespace simile::net
