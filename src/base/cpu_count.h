#pragma once

#include <string>

namespace simile::base {

// The files in which Linux states a process's processor limits; tests use files of their own.
struct CpuLimitFiles {
  std::string own_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// How many threads can run at the same time in this process: the processors of its affinity mask,
// or the cgroup's processor quota (version 1 or 2) when that is less. A quota of 1.5 counts as 2,
// so that all of it is used. At least 1.
unsigned UsableCpuCount(const CpuLimitFiles& files = {});

}  // namespace simile::base
