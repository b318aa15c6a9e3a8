#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "base/file_descriptor.h"
#include "data/file_source.h"

namespace simile::data {

// A collection's folder, which opens all of its files. It opens regular files inside the folder
// alone: links may lead elsewhere within the folder (mounted configuration does that) but never
// out, and pipes and devices are refused without waiting. Files are read, not mapped, because
// truncating a mapped file kills the process. Movable; safe to share.
class Folder {
 public:
  // Errors: kNotFound, kPermissionDenied or kInvalidArgument, naming the folder by its last part.
  static absl::StatusOr<Folder> Open(const std::filesystem::path& path);

  // Whether the folder has an entry of this name, of any kind.
  bool Has(const std::string& display_name) const;

  // Opens a file by its path relative to the folder.
  // REQUIRES: IsInside(display_name).
  // Errors: kNotFound; kInvalidArgument when it is no regular file or a link that leads out;
  //         kPermissionDenied. Messages begin with the display name.
  absl::StatusOr<std::unique_ptr<FileSource>> OpenFile(const std::string& display_name) const;

  // Whether a name is a plain relative path: not empty, not absolute, no `..`, no NUL.
  static bool IsInside(const std::string& display_name);

 private:
  Folder(base::FileDescriptor descriptor, std::filesystem::path real)
      : descriptor_(std::move(descriptor)), real_(std::move(real)) {}

  base::FileDescriptor descriptor_;
  std::filesystem::path real_;  // with every link resolved
};

}  // namespace simile::data
