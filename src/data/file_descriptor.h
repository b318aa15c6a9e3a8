#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace simile::data {

// Owns an open file descriptor. Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() {
    if (descriptor_ < 0) return;
    // An owner that goes out of scope must not cover up why the call before it failed.
    const int error = errno;
    close(descriptor_);
    errno = error;
  }

  bool open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace simile::data
