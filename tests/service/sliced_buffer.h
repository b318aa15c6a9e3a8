#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <grpcpp/grpcpp.h>

namespace simile::service {

// The bytes in slices of this size.
inline grpc::ByteBuffer BufferOf(std::string_view bytes, std::size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (std::size_t i = 0; i < bytes.size(); i += slice_bytes) {
    slices.emplace_back(std::string(bytes.substr(i, slice_bytes)));
  }
  return {slices.data(), slices.size()};
}

}  // namespace simile::service
