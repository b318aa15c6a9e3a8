// Any bytes as a .npy file of vectors: an answer, never a crash, a leak, undefined behaviour or
// memory out of proportion (run.sh sets the bounds).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/formats/byte_source.h"
#include "data/read_kind.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  simile::data::MemorySource source("input.npy", bytes);
  simile::data::ReadKind("npy", source).IgnoreError();
  return 0;
}
