#pragma once

#include <cstdint>
#include <string>

#include <absl/status/statusor.h>

#include "data/file_descriptor.h"

namespace simile::service {

// A TCP socket that listens.
struct ListenSocket {
  data::FileDescriptor fd;  // non-blocking
  std::uint16_t port = 0;
  std::string address;  // as people write it: "127.0.0.1:50051", "[::1]:50051"
};

// Listens on host:port. The host is an IPv4 or IPv6 address (no brackets) or a name, of which the
// first address is taken; port 0 takes any free one.
// Errors: kInvalidArgument for a host that cannot be found; kUnavailable when the address is not
//         this machine's, the port is taken or not allowed, with what to do.
absl::StatusOr<ListenSocket> Listen(const std::string& host, std::uint16_t port);

}  // namespace simile::service
