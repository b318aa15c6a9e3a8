#include "net/write_queue.h"

#include <algorithm>

namespace simile::net {
namespace {

// Copying fewer bytes costs less than a piece of their own.
constexpr std::size_t kCopiedBytesMax = 2'048;
// An empty queue keeps no more space.
constexpr std::size_t kIdleBytesMax = 8U << 10;

}  // namespace

void WriteQueue::Reserve(std::size_t bytes) {
  constexpr std::size_t kPieces = 4;
  if (pieces_.capacity() - pieces_.size() < kPieces) {
    pieces_.reserve(2 * pieces_.size() + kPieces);
  }
  if (copied_.capacity() - copied_.size() < bytes) copied_.reserve(2 * copied_.size() + bytes);
}

void WriteQueue::Add(std::span<const std::uint8_t> bytes) {
  const bool joins = first_ < pieces_.size() && pieces_.back().message == nullptr;
  Reserve(bytes.size());
  const std::size_t begin = copied_.size();
  copied_.insert(copied_.end(), bytes.begin(), bytes.end());
  if (joins) {
    pieces_.back().bytes += bytes.size();
  } else {
    pieces_.push_back({nullptr, begin, bytes.size()});
  }
  bytes_ += bytes.size();
}

void WriteQueue::Add(const std::shared_ptr<const OutgoingMessage>& message, std::size_t offset,
                     std::size_t bytes) {
  if (bytes <= kCopiedBytesMax) return Add(std::span(message->framed() + offset, bytes));
  pieces_.push_back({message, offset, bytes});
  bytes_ += bytes;
}

std::span<const iovec> WriteQueue::Front(std::span<iovec> space) const {
  const std::size_t count = std::min(space.size(), pieces_.size() - first_);
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[first_ + i];
    const auto* const from = piece.message == nullptr ? copied_.data() : piece.message->framed();
    space[i] = {const_cast<std::uint8_t*>(from) + piece.begin, piece.bytes};  // it is only read
  }
  return space.first(count);
}

void WriteQueue::Drop(std::size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Piece& piece = pieces_[first_];
    if (bytes < piece.bytes) {
      piece.begin += bytes;
      piece.bytes -= bytes;
      return;
    }
    bytes -= piece.bytes;
    piece.message.reset();
    ++first_;
  }
  if (bytes_ > 0) return;
  first_ = 0;
  pieces_.clear();
  copied_.clear();
  if (copied_.capacity() > kIdleBytesMax) copied_ = {};
  if (pieces_.capacity() * sizeof(Piece) > kIdleBytesMax) pieces_ = {};
}

}  // namespace simile::net
