#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/buffered_reader.h"

namespace simile::data {

// Reads a header that begins with its length, and leaves the reader after it.
//   length_bytes  how many little-endian bytes the length has
//   bytes_max     the longest header that is read; nothing is allocated for a longer one
// REQUIRES: length_bytes <= min(8, in.bytes_left()).
// Errors: kInvalidArgument, beginning with the file's name, when the header is longer than
// bytes_max or than the rest of the file.
absl::StatusOr<std::string> ReadSizedHeader(BufferedReader& in, std::size_t length_bytes,
                                            std::uint64_t bytes_max);

// Checks that exactly as many bytes follow the header as its contents need.
//   needs  begins the message: "the tensors take"
absl::Status CheckDataBytes(const BufferedReader& in, std::string_view needs, std::uint64_t bytes);

}  // namespace simile::data
