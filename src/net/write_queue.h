#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/outgoing_message.h"

namespace simile::net {

// Bytes that wait to be written, in their order: frames, which are copied, and parts of messages,
// which are not copied unless they are small. To be filled when it is empty: what was dropped keeps
// its space until then. Not thread-safe.
class WriteQueue {
 public:
  // Makes space for some pieces, which copy no more bytes together. May throw bad_alloc.
  void Reserve(std::size_t bytes);
  // Both may throw bad_alloc; then nothing is added.
  void Add(std::span<const std::uint8_t> bytes);
  // A part of the framed message, which is kept until it is written.
  void Add(const std::shared_ptr<const OutgoingMessage>& message, std::size_t offset,
           std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }
  // The first pieces. Valid until the queue changes.
  std::span<const iovec> Front(std::span<iovec> space) const;
  // The first bytes are written.
  void Drop(std::size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<const OutgoingMessage> message;  // null: the bytes are copied_'s
    std::size_t begin = 0;
    std::size_t bytes = 0;
  };


  std::vector<std::uint8_t> copied_;
  std::vector<Piece> pieces_;  // from first_ on
  std::size_t first_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace simile::net
