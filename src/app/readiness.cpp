#include "app/readiness.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/error_detail.h"
#include "base/file_descriptor.h"

namespace simile::app {
namespace {

// Sends a state to the service manager. Returns the error number, 0 for none.
int SendState(const std::string& socket_name, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_name.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  socket_name.copy(address.sun_path, socket_name.size());
  if (socket_name.front() == '@') address.sun_path[0] = '\0';  // Linux's abstract sockets
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_name.size());
  const base::FileDescriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const ssize_t sent = sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), bytes);
  return sent < 0 ? errno : 0;
}

}  // namespace

Readiness::Readiness(std::filesystem::path file, std::string notify_socket,
                     const observe::Logger& log)
    : file_(std::move(file)), notify_socket_(std::move(notify_socket)), log_(log) {}

absl::Status Readiness::RemoveStaleFile() {
  const std::lock_guard lock(mutex_);
  return RemoveFile();
}

absl::Status Readiness::Announce(std::string_view address) {
  const std::lock_guard lock(mutex_);
  if (withdrawn_) return absl::OkStatus();
  if (!file_.empty()) {
    const absl::Status written =
        base::ReplaceFile(file_, fmt::format("{}\n", address), {.mode = 0644});
    if (!written.ok()) {
      return {written.code(), fmt::format("ready file {}", std::string(written.message()))};
    }
  }
  Notify(fmt::format("READY=1\nSTATUS=serving on {}", address));
  return absl::OkStatus();
}

void Readiness::Withdraw() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(withdrawn_, true)) return;
  const absl::Status removed = RemoveFile();
  if (!removed.ok()) log_.Warn(std::string(removed.message()));
  Notify("STOPPING=1\nSTATUS=draining");
}

absl::Status Readiness::RemoveFile() const {
  if (file_.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::remove(file_, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("ready file {}: cannot be removed: {}", file_.string(), error.message()));
}

void Readiness::Notify(std::string_view state) const {
  if (notify_socket_.empty()) return;
  const int error = SendState(notify_socket_, state);
  if (error == 0) return;
  log_.Warn("the service manager is not told of the server's state",
            {{"notify_socket", notify_socket_}, {"reason", base::SystemErrorText(error)}});
}

}  // namespace simile::app
