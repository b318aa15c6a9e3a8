#pragma once

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace simile::base {

// Owns an open file, folder, socket or event and closes it. Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = other.Release();
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Passes ownership to the caller.
  int Release() { return std::exchange(fd_, -1); }
  // Keeps errno, so that a destructor does not hide why the call before it failed.
  void Close() {
    if (!valid()) return;
    const int error = errno;
    close(Release());
    errno = error;
  }

 private:
  int fd_ = -1;
};

// Writes the whole text. Returns false, with errno, when the descriptor does not take all of it.
inline bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

struct BoundedWrite {
  std::size_t written_bytes = 0;
  bool failed = false;  // the descriptor takes nothing any more: a broken pipe, a full device
};

// Writes to a descriptor whose reader may have stopped reading, such as a standard stream. Waits
// for the reader at most `wait` in total, and returns how much was written. Lines of up to PIPE_BUF
// bytes are written whole, so that lines of several writers do not mix.
//   fd  blocking or not. A terminal or a file may still block a write that was begun.
BoundedWrite WriteWithin(int fd, std::string_view text, std::chrono::milliseconds wait);

// Opens /dev/null in place of each standard stream that the program was started without (`0<&-`,
// `1>&-`, `2>&-`). Otherwise a file or socket opened later would take the stream's number and
// receive what is printed. Reading from such an input and writing to such an output still fail, so
// that lost output stays an error. Text written to such a standard error is dropped.
// REQUIRES: called first in main.
void OpenClosedStandardStreams();

}  // namespace simile::base
