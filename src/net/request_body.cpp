#include "net/request_body.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace simile::net {

std::size_t RequestBody::Want() {
  is_wanted_ = true;
  return ConsumeKept();
}

std::size_t RequestBody::GoOn() {
  if (!is_waiting_) return 0;
  PeerBudget::Part counted;
  if (!budget_->Hold(declared_bytes_ + kBesideBytes, PeerBudget::Kind::kMessages, counted,
                     &waiter_)) {
    return 0;
  }
  StopWaiting();
  Begin(std::move(counted));
  return ConsumeKept();
}

std::size_t RequestBody::Add(std::span<const std::uint8_t> bytes) {
  const std::size_t consumed = has_kept_bytes() ? 0 : Consume(bytes);
  if (problem_ == Problem::kNone) Keep(bytes.subspan(consumed));
  return problem_ == Problem::kNone ? consumed : bytes.size();
}

void RequestBody::Keep(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  if (!budget_->Hold(bytes.size(), PeerBudget::Kind::kWaiting, kept_counted_)) {
    return Fail(Problem::kNoSpace);
  }
  kept_.insert(kept_.end(), bytes.begin(), bytes.end());
}

std::size_t RequestBody::ConsumeKept() {
  const std::size_t consumed = Consume(std::span(kept_).subspan(kept_begin_));
  if (problem_ != Problem::kNone) return 0;  // nothing is kept any more
  kept_begin_ += consumed;
  kept_counted_.Release(consumed);
  if (!has_kept_bytes()) {
    kept_ = {};
    kept_begin_ = 0;
  } else if (kept_begin_ > kept_.size() / 2) {
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(kept_begin_));
    kept_begin_ = 0;
  }
  return consumed;
}

void RequestBody::Fail(Problem problem) {
  problem_ = problem;
  message_left_ = 0;
  StopWaiting();
}

std::size_t RequestBody::Consume(std::span<const std::uint8_t> bytes) {
  std::size_t consumed = 0;
  while (is_wanted_ && !is_waiting_ && problem_ == Problem::kNone && consumed < bytes.size()) {
    const std::span<const std::uint8_t> rest = bytes.subspan(consumed);
    if (prefix_seen_ < kPrefixBytes) {
      const std::size_t taken = std::min<std::size_t>(kPrefixBytes - prefix_seen_, rest.size());
      std::copy_n(rest.begin(), taken, prefix_.begin() + prefix_seen_);
      prefix_seen_ = static_cast<std::uint8_t>(prefix_seen_ + taken);
      consumed += taken;
      if (prefix_seen_ == kPrefixBytes) Declare();
      continue;
    }
    const std::size_t taken = std::min<std::size_t>(message_left_, rest.size());
    std::memcpy(message_.data() + (declared_bytes_ - message_left_), rest.data(), taken);
    message_left_ -= static_cast<std::uint32_t>(taken);
    consumed += taken;
    if (message_left_ == 0) {
      is_whole_ = true;
      is_wanted_ = false;
    }
  }
  return consumed;
}

void RequestBody::Declare() {
  declared_bytes_ = 0;
  for (const std::uint8_t byte : std::span(prefix_).subspan(1)) {
    declared_bytes_ = (declared_bytes_ << 8) | byte;
  }
  if (prefix_[0] == 1) return Fail(Problem::kCompressed);
  if (prefix_[0] != 0) return Fail(Problem::kUnknownFlag);
  if (declared_bytes_ > message_bytes_max_) return Fail(Problem::kTooLarge);
  message_left_ = declared_bytes_;
  PeerBudget::Part counted;
  if (declared_bytes_ <= kUncountedBytes) return Begin(std::move(counted));
  const std::uint64_t bytes = declared_bytes_ + kBesideBytes;
  if (budget_->Hold(bytes, PeerBudget::Kind::kMessages, counted)) return Begin(std::move(counted));
  budget_->Await(loop_, waiter_);
  is_waiting_ = true;
  // Space that was released before Await posted no task.
  if (!budget_->Hold(bytes, PeerBudget::Kind::kMessages, counted, &waiter_)) return;
  StopWaiting();
  Begin(std::move(counted));
}

void RequestBody::Begin(PeerBudget::Part counted) {
  is_counted_ = counted.bytes() > 0;
  message_ = ReceivedMessage(declared_bytes_, std::move(counted));
  if (declared_bytes_ > 0) return;
  is_whole_ = true;
  is_wanted_ = false;
}

void RequestBody::StopWaiting() {
  if (std::exchange(is_waiting_, false)) budget_->StopAwaiting(waiter_);
}

ReceivedMessage RequestBody::PopMessage() {
  assert(is_whole_);
  is_whole_ = false;
  is_counted_ = false;
  prefix_seen_ = 0;
  return std::move(message_);
}

}  // namespace simile::net
