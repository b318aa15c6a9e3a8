#include "net/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"
#include "base/loopback.h"

namespace simile::net {
namespace {

// Connections that the kernel keeps until the accept loop takes them.
constexpr int kBacklog = 512;
constexpr char kAnyAddress[] = "::";
constexpr char kAnyIpv4Address[] = "0.0.0.0";

std::string FormatAddress(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

absl::Status CannotListen(const std::string& host, std::uint16_t port, int error,
                          const ListenFlags& flags) {
  const std::string remedy =
      error == EADDRINUSE
          ? fmt::format("; choose another with {} (0 takes any free one)", flags.port)
      : error == EACCES        ? "; ports below 1024 need a privilege, choose a higher one"
      : error == EADDRNOTAVAIL ? fmt::format("; {} names an address of this machine", flags.host)
                               : "";
  return absl::UnavailableError(fmt::format("cannot listen{} on {}: {}{}", flags.purpose,
                                            FormatAddress(host, port), base::SystemErrorText(error),
                                            remedy));
}

std::uint16_t ReadBoundPort(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Listens on one address. Returns errno, or 0.
int ListenOn(const addrinfo& address, base::FileDescriptor& fd) {
  fd = base::FileDescriptor(
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  // Lets a restarted server listen while old connections linger; does not share the port.
  const int reuse = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0) {
    return errno;
  }
  // So that `::` takes IPv4 whatever net.ipv6.bindv6only says.
  const int v6_only = 0;
  if (address.ai_family == AF_INET6 &&
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0) {
    return errno;
  }
  const bool listens =
      bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(fd.get(), kBacklog) == 0;
  return listens ? 0 : errno;
}

// Whether this machine lacks the address, or the family of the address.
bool IsAbsent(int error) { return error == EADDRNOTAVAIL || error == EAFNOSUPPORT; }

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

}  // namespace

absl::StatusOr<ListenSocket> Listen(const std::string& host, std::uint16_t port,
                                    const ListenFlags& flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int lookup = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &raw);
  const Addresses found(raw, &freeaddrinfo);
  if (lookup != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "cannot listen{} on \"{}\": {}; {} takes an address of this machine, such as 127.0.0.1, "
        "0.0.0.0 or ::",
        flags.purpose, host, gai_strerror(lookup), flags.host));
  }
  base::FileDescriptor fd;
  const addrinfo* address = found.get();
  int error = ListenOn(*address, fd);
  while (IsAbsent(error) && address->ai_next != nullptr) {
    address = address->ai_next;
    error = ListenOn(*address, fd);
  }
  if (IsAbsent(error) && host == kAnyAddress) return Listen(kAnyIpv4Address, port, flags);
  if (error != 0) return CannotListen(host, port, error, flags);
  const std::uint16_t bound = ReadBoundPort(fd.get());
  return ListenSocket{std::move(fd), bound, FormatAddress(host, bound),
                      base::IsLoopback(*address->ai_addr)};
}

}  // namespace simile::net
