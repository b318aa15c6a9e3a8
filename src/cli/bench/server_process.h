#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace simile::cli::bench {

// Processes of this machine that listen on the port of an address: one, or several that share it.
// Empty when the address is another machine's, nothing listens, or their owner is another user,
// whose descriptors the kernel does not show.
//   address  HOST:PORT
//   proc     the kernel's file system of processes
std::vector<pid_t> FindListeners(const std::string& address,
                                 const std::filesystem::path& proc = "/proc");

// CPU time that the processes have used since they started, all threads, user and system. Nothing
// when one of them has ended.
std::optional<double> CpuSecondsOf(const std::vector<pid_t>& processes);
// Of this process.
double OwnCpuSeconds();

// Resident bytes now and the most since start, summed over processes; nothing when unknown.
struct ResidentMemory {
  std::uint64_t bytes = 0;
  std::uint64_t peak_bytes = 0;
};
std::optional<ResidentMemory> ResidentMemoryOf(const std::vector<pid_t>& processes);

// The machine's memory, bytes.
struct HostMemory {
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};
std::optional<HostMemory> ReadHostMemory();

}  // namespace simile::cli::bench
