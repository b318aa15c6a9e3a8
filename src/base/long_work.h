#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <absl/status/status.h>

namespace simile::base {

// Work whose time grows with rows, text or bytes. It is done in pieces, and after each it is asked
// whether the work goes on: its caller may be gone, and others may have waited. One thread at a
// time.
class LongWork {
 public:
  // Asks whether the work goes on, and may let others run first. Its error ends the work.
  using GoOn = std::function<absl::Status()>;

  explicit LongWork(GoOn go_on) : go_on_(std::move(go_on)), piece_ns_(kPieceNs) {}
  // For a thread that must not be held up: the work ends with an error once it takes longer than
  // such a thread may, to be done again on another.
  static LongWork Brief() { return LongWork(kBriefNs); }
  // For optional work. Fails after `ns` of estimated time.
  static LongWork Within(std::uint64_t ns) { return LongWork(ns); }
  // The time limit of a hint, such as a near value. The answer is complete without the hint.
  static constexpr std::uint64_t kHintNs = 5'000'000;

  // Counts work that was done, by its estimated nanoseconds, and asks when a piece is complete.
  absl::Status Did(std::uint64_t ns) {
    done_ns_ += ns;
    return done_ns_ < piece_ns_ ? absl::OkStatus() : Ask();
  }
  // Asks now: before work that cannot be cut.
  absl::Status Ask() {
    done_ns_ = 0;
    if (go_on_) return go_on_();
    is_too_long_ = true;
    return absl::DeadlineExceededError("exceeded its time budget");
  }

  // Whether work of Brief or Within ended because it took too long.
  bool is_too_long() const { return is_too_long_; }

 private:
  // A fifth of what a piece may take: estimates are wrong, and machines are slow.
  static constexpr std::uint64_t kPieceNs = 1'000'000;
  static constexpr std::uint64_t kBriefNs = 200'000;

  explicit LongWork(std::uint64_t piece_ns) : piece_ns_(piece_ns) {}

  GoOn go_on_;  // empty for brief work
  std::uint64_t piece_ns_;
  std::uint64_t done_ns_ = 0;
  bool is_too_long_ = false;
};

}  // namespace simile::base
