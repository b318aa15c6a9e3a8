#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "base/file_descriptor.h"
#include "data/file_source.h"

namespace simile::data {

// An entry of a folder.
struct FolderEntry {
  std::string display_name;  // relative to the collection's folder
  bool is_folder = false;
};

// A collection's folder, which opens all of its files. It opens regular files inside the folder
// alone: links may lead elsewhere within the folder (mounted configuration does that) but never
// out, and pipes and devices are refused without waiting. Files are read, not mapped, because
// truncating a mapped file kills the process. Movable; safe to share.
class Folder {
 public:
  // Errors: kNotFound, kPermissionDenied or kInvalidArgument, not naming the folder:
  // its path is not for every caller of a server.
  static absl::StatusOr<Folder> Open(const std::filesystem::path& path);

  // Whether the folder has an entry of this name, of any kind.
  bool Has(const std::string& display_name) const;

  // Its entries or those of a subfolder ("media/"), as they come, but for `.` and `..`; none when
  // there is no such folder, it cannot be read, or it is a link that leads out. No file is opened.
  //   count_max  reading stops after so many
  // Errors: OUT_OF_MEMORY without memory or descriptors to read it.
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& subfolder,
                                                std::size_t count_max) const;
  // The size of a regular file, 0 of anything else.
  std::uint64_t BytesOf(const std::string& display_name) const;

  // Opens a file by its path relative to the folder.
  // REQUIRES: IsInside(display_name).
  // Errors: kNotFound; kInvalidArgument when it is no regular file or a link that leads out;
  //         kPermissionDenied. Messages begin with the display name.
  absl::StatusOr<std::unique_ptr<FileSource>> OpenFile(const std::string& display_name) const;

  // Whether a name is a plain relative path of a file: not empty, not absolute, no `..`, not `.` at
  // its end, no NUL.
  static bool IsInside(const std::string& display_name);

 private:
  Folder(base::FileDescriptor descriptor, std::filesystem::path real)
      : descriptor_(std::move(descriptor)), real_(std::move(real)) {}

  // The path of an existing entry relative to the folder, with every link resolved.
  // Errors: as OpenFile; a link that leads out is one.
  absl::StatusOr<std::filesystem::path> Resolve(const std::string& display_name) const;

  base::FileDescriptor descriptor_;
  std::filesystem::path real_;  // with every link resolved
};

}  // namespace simile::data
