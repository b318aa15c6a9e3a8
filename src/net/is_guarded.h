#pragma once

#include "net/frame_guard_when.h"

namespace simile::net {

//   is_loopback  of the address that the server listens on
inline bool IsGuarded(FrameGuardWhen when, bool is_loopback) {
  return when == FrameGuardWhen::kOn || (when == FrameGuardWhen::kAuto && !is_loopback);
}

}  // namespace simile::net
