#pragma once

#include <optional>
#include <string>

#include <absl/status/statusor.h>

namespace simile::cli {

// HOST:PORT of the server that this environment's settings describe (SIMILE_CONFIG,
// SIMILE_SERVER_LISTEN, _PORT and _PORT_FILE), as a client on the same machine reaches it: at
// 127.0.0.1 where it listens on every address, and at the port of server.port_file where
// server.port is 0. Nothing where none of the four is set.
// Errors: those of app::ReadConfig; kUnavailable for port 0 without a port file, or with one that
// holds no port.
absl::StatusOr<std::optional<std::string>> ConfiguredServer();

}  // namespace simile::cli
