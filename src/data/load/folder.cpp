#include "data/load/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;

std::int64_t ToNanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The clock that the kernel's file systems stamp files with.
std::int64_t FileClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return ToNanoseconds(now);
}

absl::Status CannotOpen(std::string_view what, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return base::SystemError(
      error, denied ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kInvalidArgument,
      fmt::format("{} cannot be opened: {}", what, base::SystemErrorText(error)));
}

// Why a path of the folder could not be opened.
absl::Status OpenError(std::string_view display_name, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(fmt::format("{}: no such file", display_name));
  }
  return CannotOpen(fmt::format("{}:", display_name), error);
}

// Why the folder itself could not be opened. Does not name it: to some callers its path is secret.
absl::Status FolderError(int error) {
  if (error == ENOENT) return absl::NotFoundError("the folder does not exist");
  if (error == ENOTDIR) {
    return absl::InvalidArgumentError("is a file, not a folder; a collection is a folder of files");
  }
  return CannotOpen("the folder", error);
}

// What kind of entry is not a regular file.
std::string_view EntryKind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// Describes an entry itself, not what a link leads to. False when there is none.
bool StatEntry(int folder, const std::string& display_name, struct stat& status) {
  return fstatat(folder, display_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// Whether a path lies in a folder or is it; links are resolved in both.
bool IsWithin(const fs::path& folder, const fs::path& path) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// Opens a path whose links are resolved, part by part. Follows no link, so that a part which has
// become a link since is refused. The folders on the way need only the right to pass.
base::FileDescriptor OpenResolved(int folder, const fs::path& relative) {
  base::FileDescriptor parent;
  const fs::path parents = relative.parent_path();
  for (const fs::path& part : parents) {
    base::FileDescriptor next(openat(parent.valid() ? parent.get() : folder, part.c_str(),
                                     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return {};
    parent = std::move(next);
  }
  // Non-blocking, because opening a pipe that has no writer would wait for one.
  return base::FileDescriptor(openat(parent.valid() ? parent.get() : folder,
                                     relative.filename().c_str(),
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

FileSource::FileSource(std::string display_name, std::uint64_t size,
                       base::FileDescriptor descriptor)
    : ByteSource(std::move(display_name), size), descriptor_(std::move(descriptor)) {
  // Advice only: reads further ahead, which a loader wants.
  posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

absl::StatusOr<std::size_t> FileSource::Read(std::span<char> into) {
  // The checked size bounds the read, so bytes appended since then are ignored.
  const std::size_t wanted = std::min<std::uint64_t>(into.size(), size() - offset_);
  if (wanted == 0) return std::size_t{0};
  absl::StatusOr<std::size_t> count = ReadSome(offset_, into.first(wanted));
  if (count.ok()) offset_ += *count;
  return count;
}

absl::Status FileSource::ReadAt(std::uint64_t offset, std::span<char> into) {
  while (!into.empty()) {
    const absl::StatusOr<std::size_t> count = ReadSome(offset, into);
    if (!count.ok()) return count.status();
    offset += *count;
    into = into.subspan(*count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> FileSource::ReadSome(std::uint64_t offset, std::span<char> into) const {
  ssize_t count = 0;
  do {
    count = pread(descriptor_.get(), into.data(), into.size(), static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    const int error = errno;
    return base::SystemError(error, absl::StatusCode::kDataLoss,
                             fmt::format("{}: cannot be read at byte {}: {}", display_name(),
                                         offset, base::SystemErrorText(error)));
  }
  if (count == 0) {
    return base::Error(base::ErrorReason::kFilesChanged,
                       fmt::format("{}: ended at byte {} of {}; it was cut while being read",
                                   display_name(), base::Grouped(offset), base::Grouped(size())));
  }
  return static_cast<std::size_t>(count);
}

absl::Status FileSource::Skip(std::uint64_t count) {
  offset_ += count;
  return absl::OkStatus();
}

absl::StatusOr<FileFingerprint> FileSource::TakeFingerprint() const {
  constexpr int kWaitsMax = 20;
  for (int waits = 0;; ++waits) {
    struct stat status {};
    if (fstat(descriptor_.get(), &status) != 0) {
      return absl::DataLossError(
          fmt::format("{}: cannot be examined: {}", display_name(), base::SystemErrorText(errno)));
    }
    const std::int64_t changed_ns = ToNanoseconds(status.st_ctim);
    // A file from a server whose clock is ahead is not waited for.
    if (changed_ns < FileClockNs() || waits == kWaitsMax) {
      return FileFingerprint{.display_name = display_name(),
                             .device = status.st_dev,
                             .inode = status.st_ino,
                             .bytes = static_cast<std::uint64_t>(status.st_size),
                             .written_ns = ToNanoseconds(status.st_mtim),
                             .changed_ns = changed_ns};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::StatusOr<Folder> Folder::Open(const fs::path& path, const fs::path& links_within) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) return FolderError(error.value());
  fs::path within = links_within.empty() ? fs::path("/") : fs::canonical(links_within, error);
  if (error) return FolderError(error.value());
  base::FileDescriptor descriptor(open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) {
    return FolderError(errno);
  }
  return Folder(std::move(descriptor), std::move(real), std::move(within));
}

bool Folder::IsInside(const std::string& display_name) {
  const fs::path path(display_name);
  return !display_name.empty() && display_name.find('\0') == std::string::npos &&
         path.is_relative() && path.has_filename() && path.filename() != "." &&
         std::find(path.begin(), path.end(), "..") == path.end();
}

bool Folder::Has(const std::string& display_name) const {
  struct stat status {};
  return StatEntry(descriptor_.get(), display_name, status);
}

absl::StatusOr<std::vector<FolderEntry>> Folder::List(const std::string& subfolder,
                                                      std::size_t count_max) const {
  std::vector<FolderEntry> entries;
  std::string_view what = subfolder;
  if (what.empty()) what = "the folder";
  absl::StatusOr<base::FileDescriptor> descriptor = OpenEntry(subfolder);
  if (!descriptor.ok()) {
    if (base::ReasonOf(descriptor.status()) == base::ErrorReason::kOutOfMemory) {
      return descriptor.status();
    }
    return entries;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(
      descriptor->valid() ? fdopendir(descriptor->get()) : nullptr, closedir);
  if (folder == nullptr) {
    if (!base::IsLackOfResources(errno)) return entries;
    return CannotOpen(what, errno);
  }
  descriptor->Release();  // closedir closes it
  while (entries.size() < count_max) {
    errno = 0;
    const dirent* const entry = readdir(folder.get());
    if (entry == nullptr && base::IsLackOfResources(errno)) {
      return CannotOpen(what, errno);
    }
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    FolderEntry& added = entries.emplace_back();
    added.display_name = fmt::format("{}{}", subfolder, name);
    added.is_folder = entry->d_type == DT_DIR;
    struct stat status {};
    if (entry->d_type == DT_UNKNOWN && StatEntry(descriptor_.get(), added.display_name, status)) {
      added.is_folder = S_ISDIR(status.st_mode);
    }
  }
  return entries;
}

std::uint64_t Folder::MeasureFile(const std::string& display_name) const {
  struct stat status {};
  if (!StatEntry(descriptor_.get(), display_name, status) || !S_ISREG(status.st_mode)) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

absl::StatusOr<base::FileDescriptor> Folder::OpenEntry(const std::string& display_name) const {
  std::error_code error;
  const fs::path real = fs::canonical(real_ / display_name, error);
  if (error == std::errc::no_such_file_or_directory && Has(display_name)) {
    return absl::NotFoundError(fmt::format(
        "{}: is a link to a file that is not there; fetch that file, as `git annex get` and `dvc "
        "pull` do, or put the file itself there",
        display_name));
  }
  if (error) return OpenError(display_name, error.value());
  if (IsWithin(real_, real)) return OpenResolved(descriptor_.get(), real.lexically_relative(real_));
  if (!IsWithin(links_within_, real)) {
    return absl::InvalidArgumentError(
        fmt::format("{}: is a link that leads out of the folders that may be loaded here; put the "
                    "file itself there, as `cp -rL` does",
                    display_name));
  }
  const base::FileDescriptor root(open(links_within_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return OpenError(display_name, errno);
  return OpenResolved(root.get(), real.lexically_relative(links_within_));
}

absl::StatusOr<std::unique_ptr<FileSource>> Folder::OpenFile(
    const std::string& display_name) const {
  absl::StatusOr<base::FileDescriptor> descriptor = OpenEntry(display_name);
  if (!descriptor.ok()) return descriptor.status();
  if (!descriptor->valid()) return OpenError(display_name, errno);
  struct stat status {};
  if (fstat(descriptor->get(), &status) != 0) return OpenError(display_name, errno);
  if (!S_ISREG(status.st_mode)) {
    // Spark leaves a folder of parts in the place of a file of lines.
    const std::string advice =
        S_ISDIR(status.st_mode) && display_name.ends_with(".jsonl")
            ? fmt::format(": `cat {0}/part-* > new && rm -r {0} && mv new {0}`", display_name)
            : std::string();
    return absl::InvalidArgumentError(fmt::format("{}: is {}; a regular file is needed{}",
                                                  display_name, EntryKind(status.st_mode), advice));
  }
  return std::make_unique<FileSource>(display_name, static_cast<std::uint64_t>(status.st_size),
                                      *std::move(descriptor));
}

}  // namespace simile::data
