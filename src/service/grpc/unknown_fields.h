#pragma once

#include <cstdint>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

namespace simile::service {

struct UnknownFields {
  // The bytes are fields up to their end; otherwise counting ended where they are not.
  bool is_wire_form = false;
  std::uint64_t count = 0;
};

// How many fields of a message its type does not know, those in its messages and groups included.
// The protobuf library keeps each of them in memory of its own, which no arena counts. Reads the
// whole message, and takes no memory.
//   count_max  counting ends beyond it
UnknownFields CountUnknownFields(google::protobuf::io::ZeroCopyInputStream& bytes,
                                 const google::protobuf::Descriptor& type, std::uint64_t count_max);

}  // namespace simile::service
