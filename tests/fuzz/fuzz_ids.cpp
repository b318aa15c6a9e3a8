// Any bytes as user_ids.json: an answer, never a crash, a leak, undefined behaviour or memory out
// of proportion (run.sh sets the bounds).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/formats/byte_source.h"
#include "data/read_kind.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  simile::data::MemorySource source("user_ids.json", bytes);
  simile::data::ReadKind("ids", source).IgnoreError();
  return 0;
}
