#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "base/file_descriptor.h"

namespace simile::base {
namespace {

constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;

std::string CannotBe(std::string_view done, const std::filesystem::path& file, int error) {
  return fmt::format("{}: cannot be {}: {}", file.string(), done,
                     std::generic_category().message(error));
}

// 0, or errno of the call that failed.
int WriteAndSync(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fchmod(fd, kMode) != 0 || fsync(fd) != 0) return errno;
  return 0;
}

// Makes a rename in this folder survive a crash, where the file system can sync a folder: EINVAL
// says that it cannot, and is no error.
int SyncFolder(const std::filesystem::path& folder) {
  const FileDescriptor fd(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return fsync(fd.get()) == 0 || errno == EINVAL ? 0 : errno;
}

// 0, or errno of the call that failed. Removes the draft on failure.
int WriteThroughDraft(const std::filesystem::path& file, std::string_view text) {
  std::string draft = file.string() + ".XXXXXX";
  const FileDescriptor out(mkostemp(draft.data(), O_CLOEXEC));
  if (!out.valid()) return errno;
  int error = WriteAndSync(out.get(), text);
  if (error == 0 && std::rename(draft.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) return SyncFolder(file.parent_path());
  unlink(draft.c_str());
  return error;
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::filesystem::path& file,
                                          std::size_t bytes_max) {
  // Non-blocking, because opening a pipe that has no writer would wait for one.
  const FileDescriptor in(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!in.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return std::string();
    return absl::PermissionDeniedError(
        fmt::format("{}: cannot be opened for reading", file.string()));
  }
  struct stat status {};
  if (fstat(in.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: not a file", file.string()));
  }
  // One byte more than is allowed, to notice a file that is longer.
  std::string text(std::min<std::size_t>(bytes_max, static_cast<std::size_t>(status.st_size)) + 1,
                   '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = read(in.get(), text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::DataLossError(CannotBe("read", file, errno));
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  if (length > bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{}: over {} bytes", file.string(), bytes_max));
  }
  text.resize(length);
  return text;
}

absl::Status ReplaceFile(const std::filesystem::path& file, std::string_view text,
                         ParentFolders folders) {
  int error = 0;
  if (folders == ParentFolders::kCreate && file.has_parent_path()) {
    std::error_code created;
    std::filesystem::create_directories(file.parent_path(), created);
    error = created.value();
  }
  if (error == 0) error = WriteThroughDraft(file, text);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(CannotBe("written", file, error));
}

}  // namespace simile::base
