#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "base/file_descriptor.h"
#include "data/formats/byte_source.h"
#include "data/load/fingerprint.h"

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

// An entry of a folder.
struct FolderEntry {
  std::string display_name;  // relative to the collection's folder
  bool is_folder = false;
};

// A collection's folder, which opens all of its files. It opens regular files alone: pipes and
// devices are refused without waiting. A file may be a link, as the cache of Hugging Face, DVC and
// git-annex leave them. Files are read, not mapped, because truncating a mapped file kills the
// process. Movable; safe to share.
class Folder {
 public:
  //   links_within  a folder that links of the collection's folder may lead to, beside the folder
  //                 itself; empty: anywhere, for a folder that the operator named
  // Errors: kNotFound, kPermissionDenied or kInvalidArgument. Messages do not name the folder: not
  //         every caller of a server may see its path.
  static absl::StatusOr<Folder> Open(const std::filesystem::path& path,
                                     const std::filesystem::path& links_within = {});

  // Whether the folder has an entry of this name, of any kind.
  bool Has(const std::string& display_name) const;

  // The entries of the folder or of a subfolder ("media/"), in no order, without `.` and `..`. None
  // when the folder is missing, cannot be read, or is a link that leads too far. Opens no file.
  //   count_max  the most entries that are read
  // Errors: OUT_OF_MEMORY without memory or descriptors to read it.
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& subfolder,
                                                std::size_t count_max) const;
  // The bytes of a regular file; 0 for any other entry.
  std::uint64_t MeasureFile(const std::string& display_name) const;

  // Opens a file by its path relative to the folder.
  // REQUIRES: IsInside(display_name).
  // Errors: kNotFound; kInvalidArgument when it is no regular file or a link that leads too far;
  //         kPermissionDenied. Messages begin with the display name.
  absl::StatusOr<std::unique_ptr<FileSource>> OpenFile(const std::string& display_name) const;

  // Whether a name is a plain relative path of a file: not empty, not absolute, no `..`, not `.` at
  // its end, no NUL.
  static bool IsInside(const std::string& display_name);

 private:
  Folder(base::FileDescriptor descriptor, std::filesystem::path real,
         std::filesystem::path links_within)
      : descriptor_(std::move(descriptor)),
        real_(std::move(real)),
        links_within_(std::move(links_within)) {}

  // Opens an existing entry, with every link resolved. The descriptor is not valid, and errno says
  // why, when a part of the path has changed meanwhile or may not be opened.
  // Errors: as OpenFile, when there is no such entry or a link leads too far.
  absl::StatusOr<base::FileDescriptor> OpenEntry(const std::string& display_name) const;

  base::FileDescriptor descriptor_;
  std::filesystem::path real_;          // with every link resolved
  std::filesystem::path links_within_;  // with every link resolved; "/" for anywhere
};

}  // namespace simile::data
