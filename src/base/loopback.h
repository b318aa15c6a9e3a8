#pragma once

#include <string>

struct sockaddr;

namespace simile::base {

// Whether only this machine can reach the address: 127.0.0.0/8, ::1, or an address of 127.0.0.0/8
// that is mapped into IPv6.
bool IsLoopback(const sockaddr& address);
// The same for a host to listen on, without a look-up: an address as text, or "localhost". False
// for any other name.
bool IsLoopback(const std::string& host);

}  // namespace simile::base
