#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/byte_source.h"
#include "data/file_descriptor.h"

namespace simile::data {

// A collection's folder, the only way to its files. What it opens is a regular file inside it:
// links may lead about within the folder (mounted configuration does that), never out, and a pipe
// or device neither hangs nor is read. Files are read, not mapped: a mapping that someone truncates
// kills the process. Movable; safe to share.
class Folder {
 public:
  // Errors: kNotFound, kPermissionDenied or kInvalidArgument, naming the folder by its last part.
  static absl::StatusOr<Folder> Open(const std::filesystem::path& path);

  // Whether there is anything of this name, be it a file or not.
  bool Has(const std::string& shown) const;

  // Opens a file by its path relative to the folder.
  // REQUIRES: IsInside(shown).
  // Errors: kNotFound; kInvalidArgument when it is no regular file or a link that leads out;
  //         kPermissionDenied. Messages begin with the shown name.
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& shown) const;

  // Whether a name is a plain relative path: not empty, not absolute, no `..`, no NUL.
  static bool IsInside(const std::string& shown);

 private:
  Folder(FileDescriptor descriptor, std::filesystem::path real)
      : descriptor_(std::move(descriptor)), real_(std::move(real)) {}

  FileDescriptor descriptor_;
  std::filesystem::path real_;  // with every link resolved
};

}  // namespace simile::data
