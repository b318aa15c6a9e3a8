#pragma once

#include <cstdint>
#include <string>

namespace simile::engine {

enum class ChangeStage : std::uint8_t {
  kWaiting,    // for changes that came earlier
  kReading,    // the files
  kIndexing,   // in the backend, for filters and for look-ups
  kVerifying,  // the new index against the reference, before it serves
};

// How far a change of a collection has come.
struct ChangeProgress {
  ChangeStage stage = ChangeStage::kWaiting;
  std::string file;  // being read
  double share = 0;  // of the whole change, 0..1
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // of all files; 0 until they are known
};

}  // namespace simile::engine
