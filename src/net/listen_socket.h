#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "base/file_descriptor.h"

namespace simile::net {

// A listening TCP socket.
struct ListenSocket {
  base::FileDescriptor fd;  // non-blocking
  std::uint16_t port = 0;
  std::string address;       // "127.0.0.1:50051", "[::1]:50051"
  bool is_loopback = false;  // only this machine reaches it
};

// What the error messages of Listen name.
struct ListenFlags {
  std::string_view purpose;  // " for metrics"
  std::string_view host = "--listen";
  std::string_view port = "--port";
};

// Listens on host:port. The host is an IPv4 or IPv6 address (no brackets) or a name; port 0 chooses
// a free one. A name stands for its first address that this machine has, even when the port is
// taken there. `::` takes IPv4 as well, and is 0.0.0.0 on a machine without IPv6.
// Errors: kInvalidArgument for a host that cannot be found; kUnavailable when the address is not
//         this machine's or the port is taken or not allowed. The message says what to do.
absl::StatusOr<ListenSocket> Listen(const std::string& host, std::uint16_t port,
                                    const ListenFlags& flags = {});

}  // namespace simile::net
