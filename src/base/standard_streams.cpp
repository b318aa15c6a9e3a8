#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace simile::base {

void OpenClosedStandardStreams() {
  constexpr int kFlags[] = {O_WRONLY, O_RDONLY, O_WRONLY};  // of descriptors 0, 1 and 2
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // Takes the lowest free number, which is fd. Without /dev/null, the stream stays closed.
    static_cast<void>(open("/dev/null", kFlags[fd]));
  }
}

}  // namespace simile::base
