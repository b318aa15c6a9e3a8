#include "app/tuning/processor_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace simile::app {
namespace {

double ToSeconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double OwnSeconds() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return ToSeconds(usage.ru_utime) + ToSeconds(usage.ru_stime);
}

}  // namespace

ProcessorLoad::ProcessorLoad(std::filesystem::path stat) : stat_(std::move(stat)), last_(Read()) {}

double ProcessorLoad::OthersSinceLastCall() {
  const std::optional<Times> now = Read();
  const std::optional<Times> before = std::exchange(last_, now);
  if (!now || !before) return 0;
  const double total = now->total_s - before->total_s;
  const double others = (now->busy_s - before->busy_s) - (now->own_s - before->own_s);
  return total > 0 ? std::clamp(others / total, 0.0, 1.0) : 0;
}

// The first line of proc_stat(5): "cpu user nice system idle iowait irq softirq steal ...", in
// clock ticks since the machine started.
std::optional<ProcessorLoad::Times> ProcessorLoad::Read() const {
  std::ifstream file(stat_);
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  std::string name;
  if (!(words >> name) || name != "cpu") return std::nullopt;
  constexpr int kIdle = 3;
  constexpr int kIowait = 4;
  constexpr int kSteal = 7;  // the later ones are parts of the first two
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  Times times;
  double ticks = 0;
  for (int i = 0; i <= kSteal && words >> ticks; ++i) {
    times.total_s += ticks / ticks_per_s;
    if (i != kIdle && i != kIowait) times.busy_s += ticks / ticks_per_s;
  }
  times.own_s = OwnSeconds();
  return times;
}

}  // namespace simile::app
