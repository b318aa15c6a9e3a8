#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace simile::simulation {

// While it lives, LeakSanitizer ignores what is allocated: for schedules that are to fail, whose
// threads never destroy what they own.
class IgnoredLeaks {
 public:
#if defined(__SANITIZE_ADDRESS__)
  IgnoredLeaks() { __lsan_disable(); }
  ~IgnoredLeaks() { __lsan_enable(); }
#else
  IgnoredLeaks() {}
  ~IgnoredLeaks() {}
#endif
  IgnoredLeaks(const IgnoredLeaks&) = delete;
  IgnoredLeaks& operator=(const IgnoredLeaks&) = delete;
};

}  // namespace simile::simulation
