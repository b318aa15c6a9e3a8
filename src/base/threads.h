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

// How many threads of this process can run at the same time. That is the number of processors in
// its affinity mask, or the cgroup's processor quota (version 1 or 2) when the quota is less. A
// quota of 1.5 counts as 2, so that all of it is used. At least 1.
unsigned UsableCpuCount(const CpuLimitFiles& files = {});

// Lowers the priority of the calling thread, and of threads that it starts later, below the threads
// that answer requests. Where both want one processor, this thread gets a tenth of it. For loads,
// builds and checks. Does nothing where threads have no priority of their own.
void UseBackgroundPriority();

}  // namespace simile::base
