#include "data/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/message_text.h"

namespace simile::data {
namespace {

std::int64_t ToNanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The clock that the kernel's file systems stamp files with.
std::int64_t FileClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return ToNanoseconds(now);
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

}  // namespace simile::data
