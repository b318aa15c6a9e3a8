#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <absl/status/status.h>

namespace simile::base {

// Work whose time grows with rows, text or bytes. It is done in pieces. After each piece the work
// asks whether to go on, because its caller may be gone or other work may wait. One thread at a
// time.
class LongWork {
 public:
  // Asks whether the work goes on, and may let others run first. Its error ends the work.
  using GoOn = std::function<absl::Status()>;

  explicit LongWork(GoOn go_on) : go_on_(std::move(go_on)), piece_ns_(kPieceNs) {}
  // For a thread that must not be delayed. The work fails when it takes longer than kBriefNs of
  // estimated time; the caller repeats it on another thread.
  static LongWork Brief() { return LongWork(kBriefNs); }
  // For optional work. Fails after `ns` of estimated time.
  static LongWork Within(std::uint64_t ns) { return LongWork(ns); }
  // The time limit of a hint, such as a near value. The answer is complete without the hint.
  static constexpr std::uint64_t kHintNs = 5'000'000;

  // Adds finished work, in estimated nanoseconds, and asks when a piece is complete.
  absl::Status Did(std::uint64_t ns) {
    done_ns_ += ns;
    return done_ns_ < piece_ns_ ? absl::OkStatus() : Ask();
  }
  // Asks now, before work that cannot be divided into pieces.
  absl::Status Ask() {
    done_ns_ = 0;
    if (go_on_) return go_on_();
    is_too_long_ = true;
    return absl::DeadlineExceededError("exceeded its time budget");
  }

  // Whether work of Brief or Within ended because it took too long.
  bool is_too_long() const { return is_too_long_; }

 private:
  // A fifth of what a piece may take, because estimates are wrong and machines are slow.
  static constexpr std::uint64_t kPieceNs = 1'000'000;
  static constexpr std::uint64_t kBriefNs = 200'000;

  explicit LongWork(std::uint64_t piece_ns) : piece_ns_(piece_ns) {}

  GoOn go_on_;  // empty for brief work
  std::uint64_t piece_ns_;
  std::uint64_t done_ns_ = 0;
  bool is_too_long_ = false;
};

}  // namespace simile::base
