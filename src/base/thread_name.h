#pragma once

#include <pthread.h>

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

}  // namespace simile::base
