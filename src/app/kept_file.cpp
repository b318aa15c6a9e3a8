#include "app/kept_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "data/file_descriptor.h"

namespace simile::app {

absl::StatusOr<std::string> ReadKeptFile(const std::filesystem::path& file, std::size_t bytes_max) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::string();
  if (!std::filesystem::is_regular_file(file, error)) {
    return absl::InvalidArgumentError(fmt::format("{}: not a file", file.string()));
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || bytes > bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{}: over {} bytes", file.string(), bytes_max));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    return absl::PermissionDeniedError(
        fmt::format("{}: cannot be opened for reading", file.string()));
  }
  return std::string{std::istreambuf_iterator<char>(stream), {}};
}

absl::Status ReplaceKeptFile(const std::filesystem::path& file, const std::string& text) {
  const auto cannot = [&file](int error) {
    return absl::UnavailableError(fmt::format("{}: cannot be written: {}", file.string(),
                                              std::generic_category().message(error)));
  };
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) return cannot(made.value());
  std::string draft = file.string() + ".XXXXXX";
  const data::FileDescriptor out(mkstemp(draft.data()));
  if (!out.valid()) return cannot(errno);
  const bool written =
      write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && std::rename(draft.c_str(), file.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  unlink(draft.c_str());
  return cannot(error);
}

}  // namespace simile::app
