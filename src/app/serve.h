#pragma once

#include "app/config.h"

namespace simile::app {

// The server program: builds the server, prints the backend and the collections to standard output,
// loads, answers until SIGTERM or SIGINT, drains. A second signal ends the process at once.
// REQUIRES: called from the main thread, while it is the only one.
// Returns the exit status: 0 after a clean drain, 1 if it could not start (the message is on
// standard error) or if calls were cut off. Exits with 75 after a drain for a lost GPU if
// gpu.on_fault is restart.
int RunServe(const Config& config);

}  // namespace simile::app
