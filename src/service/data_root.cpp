#include "service/data_root.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::service {
namespace {

constexpr std::size_t kFolderBytesMax = 4'096;

bool IsInside(const std::filesystem::path& root, const std::filesystem::path& path) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

}  // namespace

absl::StatusOr<std::filesystem::path> ResolveInDataRoot(const std::filesystem::path& data_root,
                                                        const std::string& folder) {
  const auto refuse = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("folder: {} {}; name a folder inside the server's data root, relative to it",
                    base::Quoted(folder), what));
  };
  if (data_root.empty()) {
    return absl::FailedPreconditionError(
        "folder: this server has no data root to load from; start it with --data-root FOLDER");
  }
  const std::filesystem::path relative(folder);
  if (folder.empty()) return refuse("is empty");
  if (folder.size() > kFolderBytesMax) return refuse("is too long");
  if (folder.find('\0') != std::string::npos) return refuse("contains a NUL byte");
  if (relative.is_absolute()) return refuse("is absolute");
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return refuse("contains `..`");
  }

  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(data_root, error);
  if (error) {
    return absl::FailedPreconditionError(
        "folder: the server cannot read its data root; its --data-root must name a readable "
        "folder");
  }
  const std::filesystem::path path = std::filesystem::canonical(root / relative, error);
  if (error) {
    return absl::NotFoundError(
        fmt::format("folder: the server's data root has no {}", base::Quoted(folder)));
  }
  if (!IsInside(root, path)) return refuse("leads out of the data root through a link");
  if (!std::filesystem::is_directory(path, error)) return refuse("is not a folder");
  return path;
}

}  // namespace simile::service
