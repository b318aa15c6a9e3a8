#pragma once

#include "app/config.h"

namespace simile::app {

// The server program: builds the server, says on standard output what it serves and on what, loads,
// answers until SIGTERM or SIGINT, drains. A second signal ends the process at once. Call it from
// the main thread while there is no other.
// Returns the exit status: 0 after a clean drain, 1 when it could not start (the message is on
// standard error) or when calls had to be cut off. Ends the process with 75 after a drain for a
// lost GPU where the configuration has that met by a restart.
int RunServe(const Config& config);

}  // namespace simile::app
