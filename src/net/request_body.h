#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "net/peers.h"

namespace simile::net {

// A message of gRPC that has arrived, in one block. Counts in its peer's budget while it exists.
class ReceivedMessage {
 public:
  ReceivedMessage() = default;
  // Throws bad_alloc.
  ReceivedMessage(std::size_t bytes, PeerBudget::Part counted)
      : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(bytes)),
        size_(bytes),
        counted_(std::move(counted)) {}

  std::uint8_t* data() { return bytes_.get(); }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.get()), size_}; }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
  PeerBudget::Part counted_;
};

// Makes messages of the bytes of a call, one at a time. Bytes are kept unread while no message is
// wanted, or while the message waits for space in its peer's budget. Not thread-safe.
class RequestBody {
 public:
  enum class Problem : std::uint8_t {
    kNone,
    kTooLarge,    // the message declares more bytes than it may have
    kNoSpace,     // the peer's budgets have no space for the bytes that came
    kCompressed,  // by the flag of the message
    kUnknownFlag,
  };
  // A message of at most this size is not counted: the limit of calls on a connection bounds these
  // messages.
  static constexpr std::uint32_t kUncountedBytes = 4U << 10;

  //   message_bytes_max  limits.receive_bytes_max
  //   waiter             posted when a message that waits may go on; borrowed
  RequestBody(std::uint32_t message_bytes_max, std::shared_ptr<PeerBudget> budget, EventLoop& loop,
              EventLoop::Task& waiter)
      : message_bytes_max_(message_bytes_max),
        budget_(std::move(budget)),
        loop_(loop),
        waiter_(waiter) {}
  ~RequestBody() { StopWaiting(); }
  RequestBody(const RequestBody&) = delete;
  RequestBody& operator=(const RequestBody&) = delete;

  // The functions below return how many bytes need not be kept any more. The peer may send the same
  // number of bytes again. They may throw bad_alloc.

  // A message is wanted, until one is whole.
  std::size_t Want();
  // Bytes that arrived.
  std::size_t Add(std::span<const std::uint8_t> bytes);
  // Asks again for the space that the message waits for.
  std::size_t GoOn();

  bool is_whole() const { return is_whole_; }
  // REQUIRES: is_whole()
  ReceivedMessage PopMessage();
  Problem problem() const { return problem_; }
  std::uint32_t declared_bytes() const { return declared_bytes_; }

  // How much of the message under way has not arrived; 0 while it waits for space.
  std::uint32_t missing_bytes() const { return is_waiting_ ? 0 : message_left_; }
  bool is_waiting() const { return is_waiting_; }
  // Whether the current message, whole or not, holds space in the budget.
  bool is_counted() const { return is_counted_ && !is_waiting_; }
  bool has_kept_bytes() const { return kept_begin_ != kept_.size(); }
  // Whether no byte has arrived after the last message that was taken.
  bool is_between_messages() const { return prefix_seen_ == 0 && !has_kept_bytes(); }

 private:
  static constexpr std::size_t kPrefixBytes = 5;    // compressed or not, and the length
  static constexpr std::size_t kBesideBytes = 256;  // what a message takes besides its bytes

  std::size_t Consume(std::span<const std::uint8_t> bytes);
  std::size_t ConsumeKept();
  void Keep(std::span<const std::uint8_t> bytes);
  // The prefix is complete.
  void Declare();
  void Begin(PeerBudget::Part counted);
  void StopWaiting();
  void Fail(Problem problem);

  const std::uint32_t message_bytes_max_;
  const std::shared_ptr<PeerBudget> budget_;
  EventLoop& loop_;
  EventLoop::Task& waiter_;

  bool is_wanted_ = false;
  bool is_whole_ = false;
  bool is_waiting_ = false;
  Problem problem_ = Problem::kNone;
  std::array<std::uint8_t, kPrefixBytes> prefix_{};
  std::uint8_t prefix_seen_ = 0;
  std::uint32_t declared_bytes_ = 0;
  std::uint32_t message_left_ = 0;
  bool is_counted_ = false;  // message_, in the budget
  ReceivedMessage message_;
  std::vector<std::uint8_t> kept_;  // from kept_begin_ on, in the order in which they arrived
  std::size_t kept_begin_ = 0;
  PeerBudget::Part kept_counted_;
};

}  // namespace simile::net
