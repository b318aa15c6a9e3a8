#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "cli/client_security.h"
#include "cli/command_line.h"
#include "cli/connection.h"

namespace simile::cli {

// Parses a server's address, HOST:PORT; HOST alone means its port 50051. An IPv6 address needs
// brackets. Errors: kInvalidArgument, `give HOST:PORT, without "http://"`.
absl::StatusOr<std::string> ParseServerAddress(std::string_view text);

// The flags of every command that calls a server.
struct ClientFlags {
  const CommandSpec* command = nullptr;  // the command that has these flags
  std::optional<std::string> server;
  SecurityFlags security_flags;
  std::string address;      // HOST:PORT; read by the check of AddClientFlags
  ClientSecurity security;  // read by the same check
  std::optional<double> timeout_s;
  bool json = false;
};
// Adds the flags, and a check that reads address, timeout and credentials.
//   timeout_help  the help text about the default timeout
//   server_help   help of --server for a command that calls a server only with this flag
void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help,
                    const std::string& server_help = "");
//   timeout_default_s  the limit without --timeout; unset: no limit
// REQUIRES: the check of AddClientFlags was made.
Connection Connect(const ClientFlags& flags, std::optional<double> timeout_default_s);

// The named collection, or the server's only collection if no name is given. Errors: the server's
// for an unknown name; kInvalidArgument listing the names if there are several; kNotFound if there
// is none.
absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                const std::optional<std::string>& name);

// The same for a command with the arguments COLLECTION and another one, if only one text is given.
// A text that names no collection is then the other argument, provided that the server has exactly
// one collection.
//   other  in that case set to the text, and `name` is unset
absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                std::optional<std::string>& name,
                                                std::optional<std::string>& other);

// The command to suggest next, with the flags that name the same server and collection: `simile
// fetch --id heat-1995 --collection films`.
//   words  the command and its own flags: "fetch --id heat-1995"
std::string NextCommand(std::string_view words, const ClientFlags& client,
                        const std::optional<std::string>& collection);

}  // namespace simile::cli
