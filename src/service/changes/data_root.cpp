#include "service/changes/data_root.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::service {
namespace {

using base::ErrorReason;

constexpr std::size_t kFolderBytesMax = 4'096;

bool IsInside(const std::filesystem::path& root, const std::filesystem::path& path) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

// The path from the root of the file system as it is written, links not followed, without a slash
// at the end.
std::filesystem::path Written(const std::filesystem::path& path) {
  const std::filesystem::path written = std::filesystem::absolute(path).lexically_normal();
  return written.has_filename() ? written : written.parent_path();
}

}  // namespace

absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder) {
  const auto refuse = [&](ErrorReason reason, std::string_view what) {
    return base::Error(
        reason,
        fmt::format("folder: {} {}; name a folder inside the server's data root, relative to it",
                    base::Quoted(folder), what),
        "folder");
  };
  if (data_root.empty()) {
    return base::Error(ErrorReason::kOutsideDataRoot,
                       "folder: this server has no data root to load from; start it with "
                       "--data-root FOLDER",
                       "folder");
  }
  const std::filesystem::path relative(folder);
  if (folder.empty()) return refuse(ErrorReason::kInvalidField, "is empty");
  if (folder.size() > kFolderBytesMax) return refuse(ErrorReason::kInvalidField, "is too long");
  if (folder.find('\0') != std::string::npos) {
    return refuse(ErrorReason::kInvalidField, "contains a NUL byte");
  }
  if (relative.is_absolute()) return refuse(ErrorReason::kOutsideDataRoot, "is absolute");
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return refuse(ErrorReason::kOutsideDataRoot, "contains `..`");
  }

  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(data_root, error);
  if (base::IsLackOfResources(error.value())) return base::OutOfMemory();
  if (error) {
    return base::Error(ErrorReason::kOutsideDataRoot,
                       "folder: the server cannot read its data root; its --data-root must name a "
                       "readable folder",
                       "folder");
  }
  const std::filesystem::path path = std::filesystem::canonical(root / relative, error);
  if (base::IsLackOfResources(error.value())) return base::OutOfMemory();
  if (error) {
    return base::Error(
        ErrorReason::kInvalidFiles,
        fmt::format("folder: the server's data root has no {}", base::Quoted(folder)), "folder");
  }
  if (!IsInside(root, path)) {
    return refuse(ErrorReason::kOutsideDataRoot, "leads out of the data root through a link");
  }
  if (!std::filesystem::is_directory(path, error)) {
    return refuse(ErrorReason::kInvalidFiles, "is not a folder");
  }
  return path;
}

std::string PathInDataRoot(const std::filesystem::path& data_root,
                           const std::filesystem::path& folder) {
  if (data_root.empty()) return "";
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(data_root, error);
  if (error) return "";
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  if (error || !IsInside(root, path)) return "";
  // As the operator wrote it, if possible: a link to the newest folder stays a link.
  const std::filesystem::path written = Written(folder);
  for (const std::filesystem::path& from : {Written(data_root), root}) {
    if (IsInside(from, written)) return written.lexically_relative(from).string();
  }
  return path.lexically_relative(root).string();
}

absl::StatusOr<FoundFolder> ResolveFolder(const std::filesystem::path& data_root,
                                          const FolderName& name) {
  if (name.configured) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::canonical(name.path, error);
    FolderName resolved = name;
    if (!error) resolved.path = found.string();
    return FoundFolder{name, std::move(resolved), name.path, {}};
  }
  auto path = ResolveInDataRoot(data_root, name.path);
  if (!path.ok()) return path.status();
  std::filesystem::path links_within = name.by_operator ? "" : data_root;
  if (!name.within.empty()) {
    const auto within = ResolveInDataRoot(data_root, name.within);
    if (!within.ok()) return within.status();
    const std::filesystem::path relative = path->lexically_relative(*within);
    if (relative.empty() || *relative.begin() == "..") {
      return base::Error(ErrorReason::kPermissionDenied,
                         fmt::format("folder: {} leads out of the folder {} through a link",
                                     base::Quoted(name.path), base::Quoted(name.within)),
                         "folder");
    }
    links_within = *within;
  }
  FolderName found = name;
  found.path = PathInDataRoot(data_root, *path);
  return FoundFolder{name, std::move(found), *std::move(path), std::move(links_within)};
}

}  // namespace simile::service
