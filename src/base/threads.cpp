#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace simile::base {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

unsigned AffinityCount() {
  // The kernel refuses a mask smaller than its own, so the mask grows until it is accepted.
  for (int cpus = 1'024; cpus <= 1 << 20; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(cpus)), [](cpu_set_t* owned) { CPU_FREE(owned); });
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (sched_getaffinity(0, bytes, set.get()) == 0) {
      return static_cast<unsigned>(CPU_COUNT_S(bytes, set.get()));
    }
  }
  return std::thread::hardware_concurrency();
}

// A quota divided by its period, both in microseconds. Where there is no quota, the file is missing
// or holds "max" (version 2) or -1 (version 1).
double ReadQuota(std::istream& quotas, std::istream& periods) {
  double quota = 0;
  double period = 0;
  if (!(quotas >> quota) || !(periods >> period) || quota <= 0 || period <= 0) return kNoQuota;
  return quota / period;
}

double QuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");  // "150000 100000"
  return ReadQuota(file, file);
}

double QuotaV1(const std::string& folder) {
  std::ifstream quotas(folder + "/cpu.cfs_quota_us");
  std::ifstream periods(folder + "/cpu.cfs_period_us");
  return ReadQuota(quotas, periods);
}

// The smallest quota from the process's own group up to the root: each level limits the levels
// below. Inside a container the path may be the host's and not exist here; the root still does.
template <class Quota>
double SmallestQuota(const std::string& mount, std::string path, Quota quota) {
  double smallest = quota(mount);
  while (path.size() > 1) {
    smallest = std::min(smallest, quota(mount + path));
    path.resize(path.find_last_of('/'));
  }
  return smallest;
}

double CgroupQuota(const CpuLimitFiles& files) {
  double smallest = kNoQuota;
  std::ifstream own(files.own_cgroup);
  // Each line is "hierarchy:controllers:path"; version 2 is "0::path".
  for (std::string line; std::getline(own, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      smallest = std::min(smallest, SmallestQuota(files.cgroup_root, path, QuotaV2));
    } else if ((',' + controllers + ',').find(",cpu,") != std::string::npos) {
      for (const char* mount : {"/cpu", "/cpu,cpuacct"}) {
        smallest = std::min(smallest, SmallestQuota(files.cgroup_root + mount, path, QuotaV1));
      }
    }
  }
  return smallest;
}

}  // namespace

unsigned UsableCpuCount(const CpuLimitFiles& files) {
  const double count = std::min<double>(AffinityCount(), std::ceil(CgroupQuota(files)));
  return std::max(1U, static_cast<unsigned>(count));
}

void UseBackgroundPriority() {
#if defined(__linux__)
  // POSIX gives a process one priority; on Linux each thread has its own, and 0 means the caller.
  constexpr int kNiceness = 10;
  setpriority(PRIO_PROCESS, 0, kNiceness);
#endif
}

}  // namespace simile::base
