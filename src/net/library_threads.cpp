#include <grpc/support/cpu.h>
#include <sched.h>

#include <algorithm>

#include "base/cpu_count.h"

// gRPC sizes its thread pools by the processors of the machine: on one of 64, a server that may use
// 2 of them starts 50 threads, and 180 under load. These two functions replace those of gRPC's
// library, whose only sources of that number they are: the dynamic linker takes the program's.

unsigned gpr_cpu_num_cores() {
  static const unsigned count = simile::base::UsableCpuCount();
  return count;
}

// gRPC picks one of gpr_cpu_num_cores() queues by this number, so processors share queues.
unsigned gpr_cpu_current_cpu() {
  return static_cast<unsigned>(std::max(0, sched_getcpu())) % gpr_cpu_num_cores();
}
