#pragma once

#include <cstdint>

namespace simile::net {

// Whether the server guards its connections (frame_guard.h). auto: where it listens beyond
// loopback.
enum class FrameGuardWhen : std::uint8_t { kAuto, kOn, kOff };

}  // namespace simile::net
