#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "service/calls/caller_shares.h"

namespace simile::service {

// The memory of replies from when they are made until they are sent. It is bounded, because callers
// decide when they read, and shared among the callers. Each Part keeps this object alive. Safe to
// use from any thread.
class UnsentReplies : public std::enable_shared_from_this<UnsentReplies> {
 public:
  // The memory of a reply, which is counted as long as this Part exists.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept = default;
    Part& operator=(Part&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(caller_, other.caller_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Part() {
      if (of_ != nullptr) of_->shares_.GiveBack(caller_, bytes_);
    }

   private:
    friend class UnsentReplies;
    Part(std::shared_ptr<UnsentReplies> of, CallerKey caller, std::uint64_t bytes)
        : of_(std::move(of)), caller_(caller), bytes_(bytes) {}

    std::shared_ptr<UnsentReplies> of_;  // null: of nothing
    CallerKey caller_ = 0;
    std::uint64_t bytes_ = 0;
  };

  explicit UnsentReplies(std::uint64_t bytes_max) : shares_(CallerShares::OfBytes(bytes_max)) {}

  // Counts a reply of the caller. False when it does not fit (CallerShares).
  bool Hold(CallerKey caller, std::uint64_t bytes, Part& part) {
    if (!shares_.Hold(caller, bytes)) return false;
    part = Part(shared_from_this(), caller, bytes);
    return true;
  }
  // Why a reply does not fit, for a message.
  std::string Shortage(CallerKey caller, std::uint64_t bytes) const {
    return shares_.Shortage(caller, bytes);
  }

  std::uint64_t bytes() const { return shares_.held(); }

 private:
  CallerShares shares_;
};

}  // namespace simile::service
