#include "observe/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include "base/atomic_file.h"

namespace simile::observe {
namespace {

constexpr std::size_t kFileBytesMax = 4U << 20;  // /proc/stat has a line of all interrupts

double TicksPerSecond() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Empty when the file cannot be read. Not by the library's streams, which throw when a read fails.
std::string ReadWhole(const char* path) {
  return base::ReadWholeFile(path, kFileBytesMax).value_or("");
}

// Removes the next space-separated number from the front of text.
bool ConsumeNumber(std::string_view& text, std::uint64_t& number) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool SkipFields(std::string_view& text, int count) {
  for (int skipped = 0; skipped < count; ++skipped) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return false;
    text.remove_prefix(space);
  }
  return true;
}

// Returns when the machine started, in seconds since the epoch, from `btime` in /proc/stat.
std::optional<std::uint64_t> ReadBootTimeSeconds() {
  const std::string stat = ReadWhole("/proc/stat");
  const std::size_t at = stat.find("\nbtime ");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(stat).substr(at + 7);
  std::uint64_t seconds = 0;
  if (!ConsumeNumber(rest, seconds)) return std::nullopt;
  return seconds;
}

std::optional<double> CountOpenDescriptors() {
  // Not by the library's iterator, which ends the process when memory runs out.
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (folder == nullptr) return std::nullopt;
  double count = -3;  // does not count ".", ".." and the folder's own descriptor
  while (readdir(folder.get()) != nullptr) ++count;
  return count;
}

void Add(std::vector<prometheus::MetricFamily>& families, const char* name, const char* what,
         prometheus::MetricType type, double value) {
  prometheus::MetricFamily& family = families.emplace_back();
  family.name = name;
  family.help = what;
  family.type = type;
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.gauge.value = value;
  metric.counter.value = value;
}

class ProcessCollector final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override {
    using prometheus::MetricType;
    std::vector<prometheus::MetricFamily> families;
    if (const auto stat = ReadProcessStat()) {
      Add(families, "process_cpu_seconds_total", "User and system CPU time spent, seconds.",
          MetricType::Counter, CpuTime(*stat).count());
      Add(families, "process_virtual_memory_bytes", "Virtual memory size, bytes.",
          MetricType::Gauge, static_cast<double>(stat->virtual_bytes));
      Add(families, "process_resident_memory_bytes", "Resident memory size, bytes.",
          MetricType::Gauge, static_cast<double>(ResidentBytes(*stat)));
      if (const auto boot_seconds = ReadBootTimeSeconds()) {
        Add(families, "process_start_time_seconds", "Start of the process, Unix time.",
            MetricType::Gauge,
            static_cast<double>(*boot_seconds) +
                static_cast<double>(stat->start_ticks) / TicksPerSecond());
      }
    }
    if (const auto count = CountOpenDescriptors()) {
      Add(families, "process_open_fds", "Open file descriptors.", MetricType::Gauge, *count);
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      Add(families, "process_max_fds", "File descriptors the process may open.", MetricType::Gauge,
          static_cast<double>(limit.rlim_cur));
    }
    return families;
  }
};

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view line) {
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(bracket + 1);
  ProcessStat stat;
  // After the name come state (field 3) .. cmajflt (13), utime, stime, 6 others, starttime (22).
  if (!SkipFields(rest, 11) || !ConsumeNumber(rest, stat.user_ticks) ||
      !ConsumeNumber(rest, stat.system_ticks) || !SkipFields(rest, 6) ||
      !ConsumeNumber(rest, stat.start_ticks) || !ConsumeNumber(rest, stat.virtual_bytes) ||
      !ConsumeNumber(rest, stat.resident_pages)) {
    return std::nullopt;
  }
  return stat;
}

std::chrono::duration<double> CpuTime(const ProcessStat& stat) {
  return std::chrono::duration<double>(static_cast<double>(stat.user_ticks + stat.system_ticks) /
                                       TicksPerSecond());
}

std::uint64_t ResidentBytes(const ProcessStat& stat) {
  return stat.resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<ProcessStat> ReadProcessStat() {
  return ParseProcessStat(ReadWhole("/proc/self/stat"));
}

std::shared_ptr<prometheus::Collectable> MakeProcessCollector() {
  return std::make_shared<ProcessCollector>();
}

}  // namespace simile::observe
