#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace simile::service {

// The result of the server's reader for a request's bytes.
struct ReadOutcome {
  std::string message_or_error;      // the message with its vectors, serialized, or the error
  std::size_t vectors_in_place = 0;  // those that the reader left in the received bytes
};
ReadOutcome ReadRequest(std::string_view bytes);

// The result of the protobuf library for the same bytes: the message, serialized, or the error as
// text.
std::string ParseByLibrary(std::string_view bytes);

}  // namespace simile::service
