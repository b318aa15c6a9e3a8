#pragma once

#include <cstdint>
#include <optional>

#include "simile/clock.h"

namespace simile::app {

// Decides when memory that was freed goes back to the system (base/memory_pages.h): when the
// process has done next to nothing for some seconds and holds more than after the last time. The
// allocator keeps by itself what a burst of large replies took, for ever. Not while it works,
// because other threads wait for the allocator meanwhile. Pure; used by one thread.
class IdleMemory {
 public:
  // What the process has used.
  struct Reading {
    Clock::TimePoint taken_at;
    Clock::Duration cpu_time{};  // of all threads, since the start
    std::uint64_t resident_bytes = 0;
  };

  // Whether freed memory is to be given back now. For about one reading a second.
  bool IsDue(const Reading& now);
  // What is resident after that.
  void Returned(std::uint64_t resident_bytes) { least_bytes_ = resident_bytes; }

 private:
  std::optional<Reading> last_;
  Clock::TimePoint idle_since_;
  std::uint64_t least_bytes_ = 0;  // resident after the last return, or since
};

}  // namespace simile::app
