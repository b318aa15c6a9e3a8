#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/frame_reader.h"
#include "net/peer_budgets.h"
#include "net/token_bucket.h"
#include "net/unfinished_bodies.h"
#include "simile/clock.h"

namespace simile::net {

// Why a connection is cut.
enum class Violation : std::uint8_t {
  kNone,
  kNotHttp2,
  kResets,
  kHeaderBytes,
  kStreams,
  kUnfinishedBytes,
  kPings,
  kSettings,
  kPriorities,
  kWindowUpdates,
  kEmptyData,
  kUnknownFrames,
};
// "begins and resets calls too often"
std::string_view TextOf(Violation violation);

// Watches one HTTP/2 connection for what gRPC takes without bound. It reads frame headers, and of
// bodies the lengths of messages, as the bytes pass between the socket and gRPC, in both
// directions; what the protocol forbids otherwise is left to gRPC. Pure: bytes and a clock in, a
// decision out. Takes less than 8 KiB, and 56 bytes for each call that is open. Not thread-safe.
class FrameGuard {
 public:
  struct Options {
    std::uint32_t receive_bytes_max = 20U << 20;
    std::uint32_t metadata_bytes_max = 8U << 10;
    std::uint32_t streams_max = 100;
  };

  //   clock  borrowed
  FrameGuard(const Options& options, std::shared_ptr<PeerBudget> budget, const Clock& clock);

  // Bytes that the peer sent, before gRPC sees them. May overwrite some of a body that is refused.
  // Anything but kNone: the connection must be cut, and the guard is of no further use. May throw
  // bad_alloc.
  Violation Received(std::span<std::uint8_t> bytes);
  // Bytes that gRPC has sent, for the calls that end by them.
  Violation Sent(std::span<const std::uint8_t> bytes);
  // See UnfinishedBodies.
  std::uint32_t ConsumeRefusedCount() { return bodies_.ConsumeRefusedCount(); }
  std::size_t open_count() const { return bodies_.open_count(); }

 private:
  // The kinds of frames that are counted on the connection alone.
  enum class Counted : std::uint8_t {
    kPing,
    kSettings,
    kPriority,
    kWindowUpdate,
    kEmptyData,
    kUnknown
  };
  struct Allowance;
  static const std::array<Allowance, 6> kAllowances;
  struct Inbound;
  struct Outbound;

  Violation ReadPreface(std::span<std::uint8_t>& bytes);
  Violation OnReceivedHeader(const FrameHeader& header);
  Violation OnReceivedPayload(std::span<std::uint8_t> piece);
  Violation OnReceivedData(std::span<std::uint8_t> piece);
  Violation OnHeaders(const FrameHeader& header);
  Violation CountHeaderBytes(const FrameHeader& header);
  Violation Count(Counted kind);
  void OnSentHeader(const FrameHeader& header);
  Violation OnSentPayload(std::span<const std::uint8_t> piece);
  Violation OnReset(std::uint32_t stream, bool is_by_peer);

  const std::uint64_t header_bytes_max_;
  const std::size_t open_max_;
  const std::shared_ptr<PeerBudget> budget_;
  const Clock& clock_;
  UnfinishedBodies bodies_;
  std::array<TokenBucket, 6> counted_;

  std::size_t preface_seen_ = 0;
  FrameReader received_;
  FrameHeader received_frame_;
  std::uint64_t header_bytes_ = 0;  // since the last END_HEADERS
  bool padding_is_known_ = true;    // of a DATA frame
  std::uint32_t body_left_ = 0;     // of a DATA frame, without its padding

  FrameReader sent_;
  FrameHeader sent_frame_;
  std::uint32_t sent_error_code_ = 0;  // of RST_STREAM, as far as it was seen
};

}  // namespace simile::net
