#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// Fields of /proc/self/stat, in its units.
struct ProcessStat {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;  // after boot
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
};

// Parses the line of /proc/PID/stat (proc(5)). The command name may have spaces and brackets, so
// fields are counted from the last ')'. Nothing if the line is malformed. Pure.
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

// User and system time.
std::chrono::duration<double> CpuTime(const ProcessStat& stat);
std::uint64_t ResidentBytes(const ProcessStat& stat);

// Reads the fields of this process now. Nothing when /proc cannot be read.
std::optional<ProcessStat> ReadProcessStat();

// Makes a collector of the standard process metrics, read from /proc at each scrape:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds. Unreadable ones are left out.
std::shared_ptr<prometheus::Collectable> MakeProcessCollector();

}  // namespace simile::observe
