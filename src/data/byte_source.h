#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace simile::data {

// Bytes read once, in order: a file, or memory in tests and fuzzers. Readers are written against
// this alone. Owned by whoever opened it; one thread at a time.
class ByteSource {
 public:
  // shown: the name that messages use, relative to the collection's folder.
  // size: how many bytes there are; Read never gives more.
  ByteSource(std::string shown, std::uint64_t size) : shown_(std::move(shown)), size_(size) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& shown() const { return shown_; }
  std::uint64_t size() const { return size_; }

  // Reads the next bytes, at most into.size() of them, and returns how many: 0 only at the end.
  // Errors: kDataLoss when the file cannot be read or has become shorter than size().
  virtual absl::StatusOr<std::size_t> Read(std::span<char> into) = 0;
  // Passes over bytes without reading them. REQUIRES: that many are left.
  virtual void Skip(std::uint64_t count) = 0;

 private:
  const std::string shown_;
  const std::uint64_t size_;
};

// Bytes that are in memory already. Borrows them.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string shown, std::string_view bytes)
      : ByteSource(std::move(shown), bytes.size()), rest_(bytes) {}

  absl::StatusOr<std::size_t> Read(std::span<char> into) override;
  void Skip(std::uint64_t count) override { rest_.remove_prefix(count); }

 private:
  std::string_view rest_;
};

}  // namespace simile::data
