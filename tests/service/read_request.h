#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace simile::service {

// What the server's reader makes of a request's bytes, for tests.
struct RequestRead {
  std::string result;     // the message with its vectors, serialized, or the error as text
  std::size_t sent = 0;   // vectors that the reader left in the received bytes
  bool released = false;  // whether the reader let go of the buffer
};
RequestRead ReadRequest(std::string_view bytes, std::size_t slice_bytes);

// What the protobuf library makes of them: the message, serialized, or the error as text.
std::string ParseByLibrary(std::string_view bytes);

}  // namespace simile::service
