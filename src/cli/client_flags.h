#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <absl/status/statusor.h>

#include "cli/client_security.h"
#include "cli/command_line.h"
#include "cli/connection.h"

namespace simile::cli {

// The address HOST:PORT that a text names; HOST alone is its port 50051. An IPv6 address needs
// brackets.
// Errors: kInvalidArgument, `give HOST:PORT, without "http://"`.
absl::StatusOr<std::string> ParseServerAddress(std::string_view text);

// The flags of every command that calls a server.
struct ClientFlags {
  const CommandSpec* command = nullptr;  // whose flags they are
  std::optional<std::string> server;
  SecurityFlags security_flags;
  std::string address;      // HOST:PORT; read by the check of AddClientFlags
  ClientSecurity security;  // the same
  std::optional<double> timeout_s;
  bool json = false;
};
// Adds them, and a check of the address, the timeout and what identifies the caller.
//   timeout_help  the help's text about the default timeout
//   server_help   what --server does, for a command that does not call one otherwise
void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help,
                    const std::string& server_help = "");
//   timeout_default_s  used without --timeout; unset: no limit
// REQUIRES: the check of AddClientFlags was made.
Connection Connect(const ClientFlags& flags, std::optional<double> timeout_default_s);

// The named collection, else the server's only one.
// Errors: the server's for an unknown name; kInvalidArgument listing the names when there are
// several; kNotFound when there is none.
absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                const std::optional<std::string>& name);

// The same for a command whose arguments are COLLECTION and one more, which may be given alone: a
// name that no collection has is then that other argument, where the server has one collection.
//   other  set to the name, and the name unset, in that case
absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                std::optional<std::string>& name,
                                                std::optional<std::string>& other);

// The command to suggest next, for the server and the collection that this one's flags named:
// `simile fetch --id heat-1995 --collection films`.
//   words  the command and its own flags: "fetch --id heat-1995"
std::string NextCommand(std::string_view words, const ClientFlags& client,
                        const std::optional<std::string>& collection);

}  // namespace simile::cli
