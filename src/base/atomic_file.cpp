#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/file_descriptor.h"

namespace simile::base {
namespace {

// 0, or errno of the call that failed.
int WriteAndSync(int fd, std::string_view text) {
  return WriteAll(fd, text) && fsync(fd) == 0 ? 0 : errno;
}

// Gives an open file the mode, owner and group of another, if there is another. 0, or errno.
int MakeLike(const std::filesystem::path& file, int fd) {
  struct stat old {};
  if (stat(file.c_str(), &old) != 0) return errno == ENOENT ? 0 : errno;
  // The owner first: a change of it takes bits of the mode away.
  const bool done =
      fchown(fd, old.st_uid, old.st_gid) == 0 && fchmod(fd, old.st_mode & mode_t{07777}) == 0;
  return done ? 0 : errno;
}

// Makes a rename in this folder survive a crash, where the folder can be read and synced. The file
// is in place either way.
void SyncFolder(const std::filesystem::path& folder) {
  const FileDescriptor fd(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) static_cast<void>(fsync(fd.get()));
}

// 0, or errno of the call that failed. Removes the draft on failure.
int WriteThroughDraft(const std::filesystem::path& file, std::string_view text,
                      const ReplaceOptions& options) {
  const std::string draft = fmt::format("{}.{}", file.string(), getpid());
  const FileDescriptor out(
      open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, options.mode));
  if (!out.valid()) return errno;
  int error = options.like_old ? MakeLike(file, out.get()) : 0;
  if (error == 0) error = WriteAndSync(out.get(), text);
  if (error == 0 && std::rename(draft.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) {
    SyncFolder(file.parent_path());
  } else {
    unlink(draft.c_str());
  }
  return error;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::filesystem::path& file,
                                          std::size_t bytes_max) {
  std::error_code unreachable;
  if (!std::filesystem::exists(file, unreachable)) return std::string();
  // Non-blocking, because opening a pipe that has no writer would wait for one.
  const FileDescriptor in(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!in.valid()) {
    const int error = errno;
    return SystemError(error, absl::StatusCode::kPermissionDenied,
                       fmt::format("{}: cannot be opened for reading", file.string()));
  }
  struct stat status {};
  if (fstat(in.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: not a file", file.string()));
  }
  std::string text;
  std::array<char, 4096> part;
  while (text.size() <= bytes_max) {
    const ssize_t count = read(in.get(), part.data(), part.size());
    if (count == 0) return text;
    if (count > 0) {
      text.append(part.data(), static_cast<std::size_t>(count));
    } else if (const int error = errno; error != EINTR) {
      return SystemError(
          error, absl::StatusCode::kDataLoss,
          fmt::format("{}: cannot be read: {}", file.string(), SystemErrorText(error)));
    }
  }
  return absl::InvalidArgumentError(fmt::format("{}: over {} bytes", file.string(), bytes_max));
}

absl::Status ReplaceFile(const std::filesystem::path& file, std::string_view text,
                         const ReplaceOptions& options) {
  int error = 0;
  if (options.create_folders && file.has_parent_path()) {
    std::error_code created;
    std::filesystem::create_directories(file.parent_path(), created);
    error = created.value();
  }
  if (error == 0) error = WriteThroughDraft(file, text, options);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{}: cannot be written: {}", file.string(), SystemErrorText(error)));
}

}  // namespace simile::base
