#pragma once

#include <pthread.h>

#include <string>

namespace simile::base {

// Names the calling thread for `top -H`, `perf` and debuggers.
//   name  at most 15 characters
inline void NameThread(const char* name) {
#if defined(__linux__)
  static_cast<void>(pthread_setname_np(pthread_self(), name));
#else
  static_cast<void>(name);
#endif
}

// The files in which Linux states a process's processor limits; tests use files of their own.
struct CpuLimitFiles {
  std::string own_cgroup = "/proc/self/cgroup";
  std::string cgroup_root = "/sys/fs/cgroup";
};

// How many threads can run at the same time in this process: the processors of its affinity mask,
// or the cgroup's processor quota (version 1 or 2) when that is less. A quota of 1.5 counts as 2,
// so that all of it is used. At least 1.
unsigned UsableCpuCount(const CpuLimitFiles& files = {});

// Gives the calling thread, and the threads that it starts from now on, a lower priority than those
// that answer requests: where they want the same processor, it gets a tenth of it. For loads,
// builds and checks. Does nothing where threads have no priority of their own.
void UseBackgroundPriority();

}  // namespace simile::base
