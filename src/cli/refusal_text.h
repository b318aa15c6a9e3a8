#pragma once

#include <string>

namespace simile::cli {

// What a server that takes no further connection says to one more: it answers HTTP/1.1, unasked and
// unencrypted, whatever it speaks otherwise. Empty where nothing is said within half a second, or
// something else. Connects once more: for use after a connection that failed.
//   address  HOST:PORT
std::string RefusalText(const std::string& address);

}  // namespace simile::cli
