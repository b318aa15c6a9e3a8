#include "data/folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;

std::string ErrorText(int error) { return std::generic_category().message(error); }

// Why a path of the folder could not be opened.
absl::Status OpenError(std::string_view display_name, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(fmt::format("{}: no such file", display_name));
  }
  const std::string message =
      fmt::format("{}: cannot be opened: {}", display_name, ErrorText(error));
  return error == EACCES || error == EPERM ? absl::PermissionDeniedError(message)
                                           : absl::InvalidArgumentError(message);
}

// What kind of entry is not a regular file.
std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Opens a path whose links are resolved, part by part and following none, so that a part that has
// become a link since is refused.
base::FileDescriptor OpenResolved(int folder, const fs::path& relative) {
  base::FileDescriptor parent;
  const fs::path parents = relative.parent_path();
  for (const fs::path& part : parents) {
    base::FileDescriptor next(openat(parent.valid() ? parent.get() : folder, part.c_str(),
                                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return {};
    parent = std::move(next);
  }
  // Non-blocking, because opening a pipe that has no writer would wait for one.
  return base::FileDescriptor(openat(parent.valid() ? parent.get() : folder,
                                     relative.filename().c_str(),
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

absl::StatusOr<Folder> Folder::Open(const fs::path& path) {
  const fs::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
  const std::string display_name = last.empty() ? std::string("folder") : last.string();
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) {
    return error == std::errc::no_such_file_or_directory
               ? absl::NotFoundError(fmt::format("{}: no such folder", display_name))
               : OpenError(display_name, error.value());
  }
  base::FileDescriptor descriptor(open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) {
    const int reason = errno;
    if (reason == ENOTDIR) {
      return absl::InvalidArgumentError(
          fmt::format("{}: is a file; a collection is a folder of files", display_name));
    }
    return OpenError(display_name, reason);
  }
  return Folder(std::move(descriptor), std::move(real));
}

bool Folder::IsInside(const std::string& display_name) {
  const fs::path path(display_name);
  return !display_name.empty() && display_name.find('\0') == std::string::npos &&
         path.is_relative() && path.has_filename() &&
         std::find(path.begin(), path.end(), "..") == path.end();
}

bool Folder::Has(const std::string& display_name) const {
  struct stat status {};
  return fstatat(descriptor_.get(), display_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

absl::StatusOr<std::unique_ptr<FileSource>> Folder::OpenFile(
    const std::string& display_name) const {
  std::error_code error;
  const fs::path real = fs::canonical(real_ / display_name, error);
  if (error) return OpenError(display_name, error.value());
  const fs::path relative = real.lexically_relative(real_);
  if (relative.empty() || *relative.begin() == "..") {
    return absl::InvalidArgumentError(
        fmt::format("{}: is a link that leads out of the collection's folder; put the file itself "
                    "there",
                    display_name));
  }
  base::FileDescriptor descriptor = OpenResolved(descriptor_.get(), relative);
  if (!descriptor.valid()) return OpenError(display_name, errno);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) return OpenError(display_name, errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: is {}; a regular file is needed", display_name, KindOf(status.st_mode)));
  }
  return std::make_unique<FileSource>(display_name, static_cast<std::uint64_t>(status.st_size),
                                      std::move(descriptor));
}

}  // namespace simile::data
