#include "base/freed_memory.h"

#include <cstdlib>  // defines __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace simile::base {

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void MapLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 4 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargeBytes);  // as the allocator itself relates the two
#endif
}

}  // namespace simile::base
