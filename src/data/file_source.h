#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/file_descriptor.h"
#include "data/byte_source.h"
#include "data/fingerprint.h"

namespace simile::data {

// An open regular file. Folder opens it.
class FileSource final : public ByteSource {
 public:
  //   size  of the file when it was opened: bytes appended since are not read
  FileSource(std::string display_name, std::uint64_t size, base::FileDescriptor descriptor);

  absl::StatusOr<std::size_t> Read(std::span<char> into) override;
  absl::Status Skip(std::uint64_t count) override;
  absl::Status ReadAt(std::uint64_t offset, std::span<char> into) override;

  // The file as its file system describes it now. When the file was changed within the current tick
  // of the file system's clock, waits for the end of the tick, at most 20 ms. Otherwise another
  // change within the tick would leave the same times.
  // Errors: kDataLoss.
  absl::StatusOr<FileFingerprint> TakeFingerprint() const;

 private:
  // Reads some bytes, at least one. REQUIRES: there are some.
  absl::StatusOr<std::size_t> ReadSome(std::uint64_t offset, std::span<char> into) const;

  const base::FileDescriptor descriptor_;
  std::uint64_t offset_ = 0;
};

}  // namespace simile::data
