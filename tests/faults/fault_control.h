#pragma once

#include <atomic>
#include <cstdint>

namespace simile::faults {

// The calls that can be made to fail, and how.
enum class FaultKind : std::uint32_t {
  kNone,
  kMemory,      // operator new, malloc and mmap: no memory
  kRead,        // read, pread: EIO
  kShortRead,   // read, pread: half of what was asked for, at least one byte
  kOpen,        // open, openat: EMFILE
  kWrite,       // write, pwrite, but for standard output and error: ENOSPC
  kSync,        // fsync: EIO
  kRename,      // rename: EIO
  kThread,      // pthread_create: EAGAIN
  kCut,         // pread: the file is cut at the place before it is read
  kGrow,        // pread: a byte is appended to the file before it is read
  kSwap,        // pread: NAME.next is renamed to NAME before it is read
  kKillAtRead,  // the process is killed before the call
  kKillAtWrite,
  kKillAtSync,
  kKillAtRename,
};

// What a test and inject_faults.cpp, in the server that it preloads, tell each other: a file that
// both map, named by the variable INJECT_FAULTS.
struct FaultControl {
  static constexpr std::uint32_t kFramesMax = 32;

  // Written by the test. Calls are counted, and one fails, while kind is not kNone.
  std::atomic<FaultKind> kind;
  std::atomic<std::uint64_t> failing;  // the number of the call that fails, from 1; 0 for none
  char file[64];                       // only calls on files whose path ends so; empty: on any
  std::atomic<std::int64_t> wall_clock_offset_ns;  // added to CLOCK_REALTIME at any time

  // Written by the server.
  std::atomic<std::uint64_t> seen;    // calls of the kind by the program's own code
  std::atomic<std::uint32_t> failed;  // 1 once the call has failed
  std::uint32_t frame_count;          // of the call that failed
  std::uint64_t frames[kFramesMax];  // addresses in the program, as its file has them; 0: elsewhere
};

}  // namespace simile::faults
