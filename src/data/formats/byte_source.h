#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::data {

// Bytes read in order, or a part at a time: a file, or memory in tests and fuzzers. Readers depend
// on this alone. Owned by the caller that opened it; one thread at a time.
class ByteSource {
 public:
  //   display_name  what messages call it: its name relative to the collection's folder
  //   size          in bytes; Read never gives more
  ByteSource(std::string display_name, std::uint64_t size)
      : display_name_(std::move(display_name)), size_(size) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& display_name() const { return display_name_; }
  std::uint64_t size() const { return size_; }

  // Reads the next bytes, at most into.size() of them, and returns how many: 0 only at the end.
  // Errors: kDataLoss when the file cannot be read; FILES_CHANGED when it has become shorter than
  // size().
  virtual absl::StatusOr<std::size_t> Read(std::span<char> into) = 0;
  // Moves past bytes, for which a file needs no reading. REQUIRES: at least `count` are left.
  // Errors: as Read.
  virtual absl::Status Skip(std::uint64_t count) = 0;
  // Fills `into` with the bytes from `offset` on and leaves the next bytes of Read as they are.
  // REQUIRES: offset + into.size() <= size(). Errors: as Read.
  virtual absl::Status ReadAt(std::uint64_t offset, std::span<char> into) = 0;

 private:
  const std::string display_name_;
  const std::uint64_t size_;
};

// Bytes in memory, which it borrows.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string display_name, std::string_view bytes)
      : ByteSource(std::move(display_name), bytes.size()), bytes_(bytes), rest_(bytes) {}

  absl::StatusOr<std::size_t> Read(std::span<char> into) override {
    const std::size_t count = rest_.copy(into.data(), into.size());
    rest_.remove_prefix(count);
    return count;
  }
  absl::Status Skip(std::uint64_t count) override {
    rest_.remove_prefix(count);
    return absl::OkStatus();
  }
  absl::Status ReadAt(std::uint64_t offset, std::span<char> into) override {
    bytes_.copy(into.data(), into.size(), offset);
    return absl::OkStatus();
  }

 private:
  const std::string_view bytes_;
  std::string_view rest_;
};

}  // namespace simile::data
