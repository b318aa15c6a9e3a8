#include "net/unfinished_bodies.h"

#include <algorithm>
#include <utility>

namespace simile::net {

UnfinishedBodies::UnfinishedBodies(std::uint32_t receive_bytes_max,
                                   std::shared_ptr<PeerBudget> budget)
    : receive_bytes_max_(receive_bytes_max), budget_(std::move(budget)) {}

UnfinishedBodies::~UnfinishedBodies() {
  for (const Stream& stream : streams_) budget_->Release(stream.held);
}

void UnfinishedBodies::Begin(std::uint32_t stream) {
  if (stream % 2 == 0 || stream <= last_begun_) return;
  streams_.emplace_back().number = stream;
  last_begun_ = stream;
}

bool UnfinishedBodies::End(std::uint32_t stream) {
  const Stream* const found = Find(stream);
  if (found == nullptr) return false;
  budget_->Release(found->held);
  streams_.erase(streams_.begin() + (found - streams_.data()));
  return true;
}

bool UnfinishedBodies::Add(std::uint32_t number, std::span<std::uint8_t> bytes,
                           std::uint64_t frame_bytes_left) {
  Stream* const stream = Find(number);
  if (stream == nullptr) return true;  // gRPC keeps nothing of it
  while (!bytes.empty()) {
    if (stream->refused) return Overwrite(*stream, bytes);
    if (stream->prefix_seen == kPrefixBytes) {
      const std::size_t taken = std::min<std::size_t>(stream->message_left, bytes.size());
      if (!AddToMessage(*stream, taken)) return false;
      bytes = bytes.subspan(taken);
      continue;
    }
    const bool is_whole = stream->prefix_seen == 0 && bytes.size() >= kPrefixBytes;
    const auto piece = bytes.first(std::min(kPrefixBytes - stream->prefix_seen, bytes.size()));
    std::ranges::copy(piece, stream->prefix.begin() + stream->prefix_seen);
    stream->prefix_seen = static_cast<std::uint8_t>(stream->prefix_seen + piece.size());
    bytes = bytes.subspan(piece.size());
    if (stream->prefix_seen < kPrefixBytes) continue;
    const auto prefix = is_whole ? piece : std::span<std::uint8_t>();
    if (!Declare(*stream, prefix, bytes.size(), bytes.size() + frame_bytes_left)) return false;
  }
  return true;
}

UnfinishedBodies::Stream* UnfinishedBodies::Find(std::uint32_t number) {
  const auto found = std::ranges::lower_bound(streams_, number, {}, &Stream::number);
  return found != streams_.end() && found->number == number ? &*found : nullptr;
}

bool UnfinishedBodies::Hold(Stream& stream, std::uint64_t bytes, PeerBudget::Bytes kind) {
  if (!budget_->Hold(bytes, kind)) return false;
  stream.held += bytes;
  return true;
}

bool UnfinishedBodies::Declare(Stream& stream, std::span<std::uint8_t> prefix,
                               std::size_t bytes_here, std::uint64_t frame_bytes_left) {
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) length = (length << 8) | stream.prefix.at(i);
  stream.message_left = length;
  stream.counted_as_it_comes = length <= kCountedAsItComesBytes;
  if (length > receive_bytes_max_) {
    return Refuse(stream, RefusedBody::Why::kTooLarge, prefix, frame_bytes_left);
  }
  const bool is_counted = length > bytes_here && !stream.counted_as_it_comes;
  if (is_counted && !Hold(stream, length, PeerBudget::Bytes::kDeclared)) {
    return Refuse(stream, RefusedBody::Why::kBudgetFull, prefix, frame_bytes_left);
  }
  return length > 0 || AddToMessage(stream, 0);
}

bool UnfinishedBodies::Refuse(Stream& stream, RefusedBody::Why why, std::span<std::uint8_t> prefix,
                              std::uint64_t frame_bytes_left) {
  if (prefix.empty() || frame_bytes_left < kRefusalMarkBytes) return false;
  stream.refused = true;
  stream.why = {why, stream.message_left};
  stream.mark_left = kRefusalMarkBytes;
  std::ranges::fill(prefix, std::uint8_t{0});
  prefix.back() = kRefusalMarkBytes;
  ++refused_count_;
  return true;
}

bool UnfinishedBodies::AddToMessage(Stream& stream, std::size_t bytes) {
  stream.message_left -= static_cast<std::uint32_t>(bytes);
  if (stream.message_left > 0) {
    return Hold(stream, kPieceBytes + (stream.counted_as_it_comes ? bytes : 0),
                PeerBudget::Bytes::kArrived);
  }
  budget_->Release(std::exchange(stream.held, 0));
  stream.prefix_seen = 0;
  return true;
}

// After the mark come zeros: empty messages to gRPC, which soon resets the stream.
bool UnfinishedBodies::Overwrite(Stream& stream, std::span<std::uint8_t> bytes) {
  if (!Hold(stream, bytes.size() + kPieceBytes, PeerBudget::Bytes::kArrived)) return false;
  const RefusalMark mark = MarkOf(stream.why);
  const std::size_t marked = std::min<std::size_t>(stream.mark_left, bytes.size());
  const auto rest = std::ranges::copy_n(mark.end() - stream.mark_left,
                                        static_cast<std::ptrdiff_t>(marked), bytes.begin())
                        .out;
  stream.mark_left = static_cast<std::uint8_t>(stream.mark_left - marked);
  std::fill(rest, bytes.end(), std::uint8_t{0});
  return true;
}

}  // namespace simile::net
