#include "net/frame_guard.h"

#include <algorithm>
#include <utility>

namespace simile::net {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A client that exceeds limits.metadata_bytes_max is told so by gRPC, at the end of its headers:
// what it sends until then may be a few times more, and a frame of the usual size.
constexpr std::uint64_t kMetadataTimes = 4;
constexpr std::uint64_t kFrameBytes = 16U << 10;
// What gRPC takes for each CONTINUATION frame, however little it holds.
constexpr std::uint64_t kContinuationBytes = 64;
// Streams that a peer may begin beyond the limit: gRPC refuses them, but only after it has said
// what the limit is.
constexpr std::size_t kOpenMoreMax = 1'000;

}  // namespace

// What a client may send without calls, and how much more for each HEADERS or DATA frame that the
// server sends it: clients measure bandwidth by pings, and say that they have read something.
struct FrameGuard::Allowance {
  Pace pace;
  double by_frame = 0;
  Violation violation = Violation::kNone;
};

const std::array<FrameGuard::Allowance, 6> FrameGuard::kAllowances = {{
    {{1'000, 100}, 1, Violation::kPings},
    {{200, 50}, 0, Violation::kSettings},
    {{1'000, 100}, 0, Violation::kPriorities},
    {{10'000, 1'000}, 2, Violation::kWindowUpdates},
    {{1'000, 100}, 0, Violation::kEmptyData},
    {{100, 10}, 0, Violation::kUnknownFrames},
}};

std::string_view TextOf(Violation violation) {
  switch (violation) {
    case Violation::kNone:
      return "nothing";
    case Violation::kNotHttp2:
      return "does not speak HTTP/2, or speaks TLS to a port without it";
    case Violation::kResets:
      return "begins and resets calls too often";
    case Violation::kHeaderBytes:
      return "sends metadata without end";
    case Violation::kStreams:
      return "begins far more calls at once than it may";
    case Violation::kUnfinishedBytes:
      return "leaves too many bytes of requests unfinished";
    case Violation::kPings:
      return "sends PING frames too often";
    case Violation::kSettings:
      return "sends SETTINGS frames too often";
    case Violation::kPriorities:
      return "sends PRIORITY frames too often";
    case Violation::kWindowUpdates:
      return "sends WINDOW_UPDATE frames too often";
    case Violation::kEmptyData:
      return "sends empty DATA frames too often";
    case Violation::kUnknownFrames:
      return "sends frames of other types too often";
  }
  return "";
}

// What the reader of frames calls, for each direction.
struct FrameGuard::Inbound {
  FrameGuard& guard;
  Violation violation = Violation::kNone;
  bool OnHeader(const FrameHeader& header) {
    violation = guard.OnReceivedHeader(header);
    return violation == Violation::kNone;
  }
  bool OnPayload(std::span<std::uint8_t> piece) {
    violation = guard.OnReceivedPayload(piece);
    return violation == Violation::kNone;
  }
};

struct FrameGuard::Outbound {
  FrameGuard& guard;
  Violation violation = Violation::kNone;
  bool OnHeader(const FrameHeader& header) {
    guard.OnSentHeader(header);
    return true;
  }
  bool OnPayload(std::span<const std::uint8_t> piece) {
    violation = guard.OnSentPayload(piece);
    return violation == Violation::kNone;
  }
};

FrameGuard::FrameGuard(const Options& options, std::shared_ptr<PeerBudget> budget,
                       const Clock& clock)
    : header_bytes_max_(kMetadataTimes * options.metadata_bytes_max + kFrameBytes),
      open_max_(2 * std::size_t{options.streams_max} + kOpenMoreMax),
      budget_(std::move(budget)),
      clock_(clock),
      bodies_(options.receive_bytes_max, budget_),
      counted_([now = clock.Now()]<std::size_t... kind>(std::index_sequence<kind...>) {
        return std::array{TokenBucket(kAllowances[kind].pace, now)...};
      }(std::make_index_sequence<kAllowances.size()>())) {}

Violation FrameGuard::Received(std::span<std::uint8_t> bytes) {
  if (preface_seen_ < kPreface.size()) {
    const Violation violation = ReadPreface(bytes);
    if (violation != Violation::kNone) return violation;
  }
  Inbound inbound{*this};
  received_.Read(bytes, inbound);
  return inbound.violation;
}

Violation FrameGuard::ReadPreface(std::span<std::uint8_t>& bytes) {
  const std::size_t taken = std::min(kPreface.size() - preface_seen_, bytes.size());
  const std::string_view expected = kPreface.substr(preface_seen_, taken);
  const bool agrees = std::ranges::equal(bytes.first(taken), expected, {}, {},
                                         [](char c) { return static_cast<std::uint8_t>(c); });
  preface_seen_ += taken;
  bytes = bytes.subspan(taken);
  return agrees ? Violation::kNone : Violation::kNotHttp2;
}

Violation FrameGuard::OnReceivedHeader(const FrameHeader& header) {
  received_frame_ = header;
  switch (header.type) {
    case FrameType::kData:
      padding_is_known_ = !header.Has(kPadded);
      body_left_ = padding_is_known_ ? header.length : 0;
      // One byte of padding, whose length is another.
      if (header.length > (padding_is_known_ ? 0U : 1U) || header.Has(kEndStream)) {
        return Violation::kNone;
      }
      return Count(Counted::kEmptyData);
    case FrameType::kHeaders:
      return OnHeaders(header);
    case FrameType::kContinuation:
      return CountHeaderBytes(header);
    case FrameType::kRstStream:
      return OnReset(header.stream, true);
    case FrameType::kPriority:
      return Count(Counted::kPriority);
    case FrameType::kSettings:
      return Count(Counted::kSettings);
    case FrameType::kPing:
      return Count(Counted::kPing);
    case FrameType::kWindowUpdate:
      return Count(Counted::kWindowUpdate);
  }
  return Count(Counted::kUnknown);
}

Violation FrameGuard::OnHeaders(const FrameHeader& header) {
  header_bytes_ = 0;
  bodies_.Begin(header.stream);
  if (bodies_.open_count() > open_max_) return Violation::kStreams;
  return CountHeaderBytes(header);
}

Violation FrameGuard::CountHeaderBytes(const FrameHeader& header) {
  header_bytes_ += header.length + kContinuationBytes;
  if (header_bytes_ > header_bytes_max_) return Violation::kHeaderBytes;
  if (header.Has(kEndHeaders)) header_bytes_ = 0;
  return Violation::kNone;
}

Violation FrameGuard::OnReceivedPayload(std::span<std::uint8_t> piece) {
  if (received_frame_.type != FrameType::kData) return Violation::kNone;
  if (!padding_is_known_) {
    const std::uint32_t padding = piece.front();
    padding_is_known_ = true;
    body_left_ = received_frame_.length - 1 - std::min(padding, received_frame_.length - 1);
    if (body_left_ == 0 && !received_frame_.Has(kEndStream) && received_frame_.length > 1) {
      const Violation violation = Count(Counted::kEmptyData);
      if (violation != Violation::kNone) return violation;
    }
    piece = piece.subspan(1);
  }
  return OnReceivedData(piece.first(std::min<std::size_t>(body_left_, piece.size())));
}

Violation FrameGuard::OnReceivedData(std::span<std::uint8_t> piece) {
  if (piece.empty()) return Violation::kNone;
  body_left_ -= static_cast<std::uint32_t>(piece.size());
  const bool counted = bodies_.Add(received_frame_.stream, piece, body_left_);
  return counted ? Violation::kNone : Violation::kUnfinishedBytes;
}

Violation FrameGuard::Count(Counted kind) {
  const auto index = static_cast<std::size_t>(kind);
  return counted_.at(index).Spend(clock_) ? Violation::kNone : kAllowances.at(index).violation;
}

Violation FrameGuard::OnReset(std::uint32_t stream, bool is_by_peer) {
  const bool was_open = bodies_.End(stream);
  if (!is_by_peer && !was_open) return Violation::kNone;
  return budget_->CountReset() ? Violation::kNone : Violation::kResets;
}

Violation FrameGuard::Sent(std::span<const std::uint8_t> bytes) {
  Outbound outbound{*this};
  sent_.Read(bytes, outbound);
  return outbound.violation;
}

void FrameGuard::OnSentHeader(const FrameHeader& header) {
  sent_frame_ = header;
  sent_error_code_ = 0;
  if (header.type != FrameType::kData && header.type != FrameType::kHeaders) return;
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    if (kAllowances.at(i).by_frame > 0) counted_.at(i).Give(kAllowances.at(i).by_frame);
  }
  if (header.Has(kEndStream) && bodies_.End(header.stream)) budget_->CountAnswer();
}

// A reset by the server is the peer's doing, unless it follows an answer (NO_ERROR).
Violation FrameGuard::OnSentPayload(std::span<const std::uint8_t> piece) {
  if (sent_frame_.type != FrameType::kRstStream) return Violation::kNone;
  for (const std::uint8_t byte : piece) sent_error_code_ = (sent_error_code_ << 8) | byte;
  if (sent_.payload_left() > 0) return Violation::kNone;
  if (sent_error_code_ != 0) return OnReset(sent_frame_.stream, false);
  bodies_.End(sent_frame_.stream);
  return Violation::kNone;
}

}  // namespace simile::net
