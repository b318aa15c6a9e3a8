#include "base/file_descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace simile::base {
namespace {

using std::chrono::milliseconds;

// The next part to write, if possible whole lines. A pipe that polls as writable takes PIPE_BUF
// bytes without blocking.
std::string_view NextPiece(std::string_view text) {
  if (text.size() <= PIPE_BUF) return text;
  const std::size_t end = text.rfind('\n', PIPE_BUF - 1);
  return text.substr(0, end == std::string_view::npos ? std::size_t{PIPE_BUF} : end + 1);
}

bool MayBeTriedAgain(int error) { return error == EINTR || error == EAGAIN; }

}  // namespace

BoundedWrite WriteWithin(int fd, std::string_view text, milliseconds wait) {
  using std::chrono::steady_clock;
  const steady_clock::time_point end = steady_clock::now() + wait;
  BoundedWrite result;
  for (milliseconds left = wait; result.written_bytes < text.size();
       left = std::chrono::ceil<milliseconds>(end - steady_clock::now())) {
    pollfd watched{fd, POLLOUT, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready == 0) return result;
    const std::string_view piece = NextPiece(text.substr(result.written_bytes));
    const ssize_t written = ready < 0 ? -1 : write(fd, piece.data(), piece.size());
    if (written > 0) {
      result.written_bytes += static_cast<std::size_t>(written);
      continue;
    }
    result.failed = !MayBeTriedAgain(errno);
    if (result.failed || left <= milliseconds(0)) return result;
  }
  return result;
}

void OpenClosedStandardStreams() {
  constexpr int kFlags[] = {O_WRONLY, O_RDONLY, O_WRONLY};  // of descriptors 0, 1 and 2
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // Takes the lowest free number, which is fd. Without /dev/null, the stream stays closed.
    static_cast<void>(open("/dev/null", kFlags[fd]));
  }
}

}  // namespace simile::base
