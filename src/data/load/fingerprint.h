#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "base/stable_hash.h"
#include "simile/limits.h"

namespace simile::data {

class Folder;
struct CollectionFiles;

// What a file of a collection is for. The numbers are a part of the content id.
enum class FileRole : std::uint8_t {
  kSettings = 0,  // collection.json
  kVectors = 1,
  kPayload = 2,
  kUserIds = 3,
  kUserVectors = 4,
  kInteractions = 5,
};
inline constexpr std::size_t kFileRoleCount = 6;

// A file as its file system describes it. Writing, replacing or renaming the file, or giving it
// other rights, changes its fingerprint.
struct FileFingerprint {
  std::string display_name;  // empty: the collection has no file of this role
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t written_ns = 0;  // mtime, since 1970
  std::int64_t changed_ns = 0;  // ctime, since 1970

  friend bool operator==(const FileFingerprint&, const FileFingerprint&) = default;
};

// Whether both describe the same bytes of the same file. Does not compare the ctime, which is all
// that new rights, links and attributes change.
bool HaveSameBytes(const FileFingerprint& a, const FileFingerprint& b);

// The files of a collection's folder. Equal fingerprints mean equal content, which nobody needs to
// read. Unequal fingerprints may have equal content, too: Dataset::content_id tells.
struct FolderFingerprint {
  std::array<FileFingerprint, kFileRoleCount> files;  // by FileRole

  friend bool operator==(const FolderFingerprint&, const FolderFingerprint&) = default;
};

// Finds the files of the folder as a load does and describes them. Only collection.json is read.
//   links_within  Folder::Open's
// Cost: a few system calls a file, and the waiting of FileSource::TakeFingerprint.
// Errors: as PlanDataset, except those of the files' headers.
absl::StatusOr<FolderFingerprint> TakeFingerprint(const std::filesystem::path& folder,
                                                  const Limits& limits,
                                                  const std::filesystem::path& links_within = {});
// The same for files that are found already.
absl::StatusOr<FolderFingerprint> TakeFingerprint(const Folder& folder,
                                                  const CollectionFiles& files);

// Computes the id of a collection's content while its files are read: from their bytes and roles,
// and from field types that differ from a first load's. Names, folders and times do not count.
// Every byte counts, even one that no reader needs. Equal on every machine.
class ContentIdBuilder {
 public:
  // Records that the collection has a file of this role, which may be empty.
  void AddFile(FileRole role);
  // The next bytes of the file. REQUIRES: AddFile(role) was called.
  void AddBytes(FileRole role, std::string_view bytes);

  // Adds a field whose kept type or separator differs from a first load's, because the content then
  // answers filters differently. To be called in the order of the fields.
  void AddKept(std::string_view field, std::string_view type, std::string_view separator);

  // The id of the files and kept types so far: 32 lower-case hex digits.
  std::string Id() const;

 private:
  struct File {
    base::StableHash hash;
    std::uint64_t bytes;
  };
  std::array<std::optional<File>, kFileRoleCount> files_;  // by FileRole
  std::optional<base::StableHash> kept_;                   // of kept types; nothing without them
};

}  // namespace simile::data
