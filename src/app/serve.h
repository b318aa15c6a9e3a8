#pragma once

#include "app/config/config_read.h"

namespace simile::app {

// The server program: builds the server, reports the backend and the collections (start_output.h),
// loads, answers until SIGTERM or SIGINT, says for limits.drain_delay that it stops, drains. A
// second signal ends the process at once.
// REQUIRES: called from the main thread, while it is the only one.
// Ends the process with status 0 after a drain, or 1 if the server could not start, which is
// reported. The status is 75 after a drain for a lost GPU if gpu.on_fault is restart.
[[noreturn]] void RunServe(const ConfigReading& reading);

}  // namespace simile::app
