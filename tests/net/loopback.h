#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"

namespace simile::net {

// A plain client connection to 127.0.0.1:port; invalid when refused.
inline base::FileDescriptor ConnectTo(std::uint16_t port) {
  base::FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.Close();
  }
  return fd;
}

// What arrives until the other side has closed or reset the connection.
inline std::string ReadAll(const base::FileDescriptor& fd) {
  std::string all;
  char buffer[512];
  while (true) {
    const ssize_t bytes = recv(fd.get(), buffer, sizeof buffer, 0);
    if (bytes <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(bytes));
  }
}
inline void AwaitClosed(const base::FileDescriptor& fd) { static_cast<void>(ReadAll(fd)); }

}  // namespace simile::net
