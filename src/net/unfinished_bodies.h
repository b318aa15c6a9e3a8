#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/peer_budgets.h"
#include "net/refused_body.h"

namespace simile::net {

// The calls that are open on a connection, and of each the message that is arriving. gRPC takes
// whatever a peer sends of a message before anybody else learns of the call. So the length that a
// message declares is counted in its peer's budget from the first bytes on, until all of it is
// here; where the budget does not hold it, the message is replaced by a refusal mark. Not
// thread-safe.
class UnfinishedBodies {
 public:
  // A message that declares no more is counted as it comes: it cannot be refused, only cut.
  static constexpr std::uint32_t kCountedAsItComesBytes = 64U << 10;
  // What gRPC takes for each piece of a message besides its bytes.
  static constexpr std::uint64_t kPieceBytes = 40;

  UnfinishedBodies(std::uint32_t receive_bytes_max, std::shared_ptr<PeerBudget> budget);
  ~UnfinishedBodies();
  UnfinishedBodies(const UnfinishedBodies&) = delete;
  UnfinishedBodies& operator=(const UnfinishedBodies&) = delete;

  // The peer begins a call. Numbers of streams only grow (RFC 9113, section 5.1.1); others begin
  // none. May throw bad_alloc.
  void Begin(std::uint32_t stream);
  // The call has ended, or is reset. False when there is none.
  bool End(std::uint32_t stream);
  std::size_t open_count() const { return streams_.size(); }

  // Bytes of a stream's body, in order; overwrites those of a refused one.
  //   frame_bytes_left  that follow of the same frame: a mark must fit into one
  // False when they cannot be counted or refused: the connection must be cut.
  bool Add(std::uint32_t stream, std::span<std::uint8_t> bytes, std::uint64_t frame_bytes_left);
  // Bodies refused since the last time this was asked.
  std::uint32_t ConsumeRefusedCount() { return std::exchange(refused_count_, 0); }

 private:
  static constexpr std::size_t kPrefixBytes = 5;  // compressed or not, and the length
  struct Stream {
    std::uint32_t number = 0;
    std::uint32_t message_left = 0;
    std::uint64_t held = 0;
    std::array<std::uint8_t, kPrefixBytes> prefix{};
    std::uint8_t prefix_seen = 0;
    std::uint8_t mark_left = 0;
    bool counted_as_it_comes = false;
    bool refused = false;
    RefusedBody why;
  };

  Stream* Find(std::uint32_t number);
  bool Hold(Stream& stream, std::uint64_t bytes, PeerBudget::Bytes kind);
  // The message's length is known.
  //   prefix  its bytes, when they can still be overwritten
  bool Declare(Stream& stream, std::span<std::uint8_t> prefix, std::size_t bytes_here,
               std::uint64_t frame_bytes_left);
  bool Refuse(Stream& stream, RefusedBody::Why why, std::span<std::uint8_t> prefix,
              std::uint64_t frame_bytes_left);
  bool AddToMessage(Stream& stream, std::size_t bytes);
  bool Overwrite(Stream& stream, std::span<std::uint8_t> bytes);

  const std::uint32_t receive_bytes_max_;
  const std::shared_ptr<PeerBudget> budget_;
  std::vector<Stream> streams_;  // by number
  std::uint32_t last_begun_ = 0;
  std::uint32_t refused_count_ = 0;
};

}  // namespace simile::net
