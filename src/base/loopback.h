#pragma once

#include <string>

struct sockaddr;

namespace simile::base {

// Whether only this machine reaches an address: of 127.0.0.0/8, ::1, or one of those written as
// IPv6.
bool IsLoopback(const sockaddr& address);
// The same of a host to listen on, before it is looked up: an address as text, or "localhost". Any
// other name counts as reached from elsewhere.
bool IsLoopback(const std::string& host);

}  // namespace simile::base
