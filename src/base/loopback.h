#pragma once

#include <string>

namespace simile::base {

// Whether only this machine reaches an address to listen on: 127.0.0.0/8, ::1, or "localhost".
// Names are not looked up: any other counts as reached from elsewhere.
bool IsLoopback(const std::string& host);

}  // namespace simile::base
