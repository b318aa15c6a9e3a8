#pragma once

#include "base/long_work.h"

namespace simile::tests {

// Work that goes on to its end.
inline base::LongWork UnaskedWork() {
  return base::LongWork([] { return absl::OkStatus(); });
}

}  // namespace simile::tests
