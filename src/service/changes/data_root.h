#pragma once

#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::service {

// A folder to load from.
struct FolderName {
  std::string path;         // relative to the data root
  bool configured = false;  // by the operator: the path is absolute, and leads anywhere
  // A folder of the data root; empty for the data root itself. The named folder must be inside it,
  // with links followed. For a reload that names no folder, the links of the served folder's files
  // must end inside it.
  std::string within = {};
  // Links of its files may lead anywhere, since the operator chose the folder.
  bool by_operator = false;

  friend bool operator==(const FolderName&, const FolderName&) = default;
};

// A folder that a change reads.
struct FoundFolder {
  FolderName asked;
  FolderName found;
  std::filesystem::path path;
  std::filesystem::path links_within;  // for data::Folder::Open
};

// Resolves a caller's path relative to the data root, with every link followed. Reads the file
// system, so it must not run on an event loop.
// Errors: OUTSIDE_DATA_ROOT when the path is absolute, contains `..` or leads out through a link,
//         or when there is no data root; INVALID_FIELD when it is empty, too long or contains a NUL
//         byte; INVALID_FILES when it does not exist or is no folder. The messages
//         quote only what the caller sent and do not reveal what exists outside the root.
absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder);

// The path by which ResolveInDataRoot finds the folder: "." for the data root itself. Empty when
// the folder, with every link followed, is not inside the data root. Reads the file system.
std::string PathInDataRoot(const std::filesystem::path& data_root,
                           const std::filesystem::path& folder);

// Finds a folder to load from: in the data root, or where the operator configured it.
// Errors: those of ResolveInDataRoot; PERMISSION_DENIED when it leads out of `within`.
absl::StatusOr<FoundFolder> ResolveFolder(const std::filesystem::path& data_root,
                                          const FolderName& name);

}  // namespace simile::service
