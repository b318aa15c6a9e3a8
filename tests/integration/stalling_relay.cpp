#include "integration/stalling_relay.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "net/listen_socket.h"
#include "net/loopback.h"

namespace simile::integration {
namespace {

// Forwards what can be read. False at the end of the connection.
bool Pass(int from, int to) {
  char buffer[4096];
  const ssize_t got = recv(from, buffer, sizeof buffer, 0);
  return got > 0 && send(to, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
}

}  // namespace

StallingRelay::StallingRelay(std::uint16_t server_port)
    : server_port_(server_port), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  auto socket = net::Listen("127.0.0.1", 0);
  port_ = socket->port;
  listener_ = std::move(socket->fd);
  thread_ = std::thread([this] { Relay(); });
}

StallingRelay::~StallingRelay() {
  stopped_ = true;
  SetStalled(false);
  thread_.join();
}

std::string StallingRelay::address() const { return "127.0.0.1:" + std::to_string(port_); }

void StallingRelay::SetStalled(bool stalled) {
  stalled_ = stalled;
  eventfd_write(wake_.get(), 1);
}

void StallingRelay::Relay() {
  base::FileDescriptor client;
  base::FileDescriptor server;
  while (!stopped_) {
    // A negative descriptor is not watched (poll(2)).
    pollfd watched[] = {{wake_.get(), POLLIN, 0},
                        {client.valid() ? -1 : listener_.get(), POLLIN, 0},
                        {client.get(), POLLIN, 0},
                        {stalled_ ? -1 : server.get(), POLLIN, 0}};
    poll(watched, 4, -1);
    if (watched[0].revents != 0) {
      eventfd_t ignored = 0;
      eventfd_read(wake_.get(), &ignored);
    }
    if (watched[1].revents != 0) {
      client = base::FileDescriptor(accept(listener_.get(), nullptr, nullptr));
      server = net::ConnectTo(server_port_);
    }
    if (watched[2].revents != 0 && !Pass(client.get(), server.get())) return;
    if (watched[3].revents != 0 && !Pass(server.get(), client.get())) return;
  }
}

}  // namespace simile::integration
