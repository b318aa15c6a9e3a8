#include "base/background_priority.h"

#if defined(__linux__)
#include <sys/resource.h>
#endif

namespace simile::base {

void UseBackgroundPriority() {
#if defined(__linux__)
  // POSIX gives a process one priority; on Linux each thread has its own, and 0 means the caller.
  constexpr int kNiceness = 10;
  setpriority(PRIO_PROCESS, 0, kNiceness);
#endif
}

}  // namespace simile::base
