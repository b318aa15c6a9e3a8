// Any bytes as metadata.jsonl: an answer, never a crash, a leak, undefined behaviour or memory out
// of proportion (run.sh sets the bounds).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/formats/byte_source.h"
#include "data/read_kind.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  simile::data::MemorySource source("metadata.jsonl", bytes);
  simile::data::ReadKind("jsonl", source).IgnoreError();
  return 0;
}
