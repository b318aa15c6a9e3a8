#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace simile::base {

struct BoundedWrite {
  std::size_t written_bytes = 0;
  bool failed = false;  // the descriptor takes nothing any more: a broken pipe, a full device
};

// Writes to a descriptor whose reader may have stopped reading, such as a standard stream: waits at
// most this long in all for the reader, and returns how much was written. Lines are written whole
// where they are no longer than what a pipe takes at once (PIPE_BUF), so that those of several
// writers do not mix.
//   fd  blocking or not. A terminal or a file may still block a write that was begun.
BoundedWrite WriteWithin(int fd, std::string_view text, std::chrono::milliseconds wait);

}  // namespace simile::base
