#include "cli/refusal_text.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/file_descriptor.h"

namespace simile::cli {
namespace {

constexpr timeval kTimeout{.tv_sec = 0, .tv_usec = 500'000};

base::FileDescriptor ConnectTo(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &raw);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  if (failed != 0) return {};
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    base::FileDescriptor fd(socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int option : {SO_SNDTIMEO, SO_RCVTIMEO}) {
      static_cast<void>(setsockopt(fd.get(), SOL_SOCKET, option, &kTimeout, sizeof kTimeout));
    }
    if (connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) return fd;
  }
  return {};
}

// What arrives first.
std::string Greeting(const base::FileDescriptor& fd) {
  std::array<char, 1024> bytes{};
  const ssize_t received = recv(fd.get(), bytes.data(), bytes.size(), 0);
  return received > 0 ? std::string(bytes.data(), static_cast<std::size_t>(received)) : "";
}

}  // namespace

std::string RefusalText(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const std::string reply = Greeting(ConnectTo(host, address.substr(colon + 1)));
  constexpr std::string_view kHeadersEnd = "\r\n\r\n";
  const std::size_t body = reply.find(kHeadersEnd);
  if (!reply.starts_with("HTTP/1.1 ") || body == std::string::npos) return "";
  const std::size_t text = body + kHeadersEnd.size();
  return reply.substr(text, reply.find('\n', text) - text);
}

}  // namespace simile::cli
