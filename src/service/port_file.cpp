#include "service/port_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "data/file_descriptor.h"

namespace simile::service {
namespace {

absl::Status CannotWrite(const std::filesystem::path& file, int error) {
  return absl::UnavailableError(fmt::format("cannot write the port file {}: {}", file.string(),
                                            std::generic_category().message(error)));
}

}  // namespace

absl::Status WritePortFile(const std::filesystem::path& file, std::uint16_t port) {
  const std::string text = fmt::format("{}\n", port);
  std::filesystem::path draft = file;
  draft += fmt::format(".{}", getpid());
  const data::FileDescriptor out(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                                      S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  if (!out.valid()) return CannotWrite(file, errno);
  const bool written =
      write(out.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || std::rename(draft.c_str(), file.c_str()) != 0) {
    const int error = errno;
    unlink(draft.c_str());
    return CannotWrite(file, error);
  }
  return absl::OkStatus();
}

}  // namespace simile::service
