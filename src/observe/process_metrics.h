#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// What /proc/self/stat says about a process, in its own units.
struct ProcessStat {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;  // after boot
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
};

// Reads one line of /proc/PID/stat (proc(5)). The command name may hold spaces and brackets, so
// fields are counted from the last ')'. Nothing when the line is not of that form. Pure.
std::optional<ProcessStat> ParseProcessStat(std::string_view line);

// The process metrics every Prometheus client offers, read from /proc when a scrape comes:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds. What cannot be read is left out.
std::shared_ptr<prometheus::Collectable> MakeProcessCollector();

}  // namespace simile::observe
