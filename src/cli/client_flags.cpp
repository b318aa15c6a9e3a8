#include "cli/client_flags.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "cli/configured_server.h"
#include "cli/environment.h"
#include "cli/server_address.h"

namespace simile::cli {
namespace {

constexpr const char* kDefaultServer = "127.0.0.1:50051";
// Longer timeouts mean no limit: they would overflow the clock.
constexpr double kTimeoutSecondsMax = 1e6;
constexpr int kNamesListed = 10;

// Where the address of the server comes from, for messages, and what it is.
struct NamedServer {
  std::string origin;  // "--server ", "SIMILE_SERVER="
  std::string address;
};

// The flag, else SIMILE_SERVER, else the server that this environment's settings describe, else the
// default.
//   only_if_named  the command calls a server only where the flag names one
// Errors: ConfiguredServer's.
absl::StatusOr<NamedServer> ServerOf(const ClientFlags& flags, bool only_if_named) {
  if (flags.server) return NamedServer{"--server ", *flags.server};
  if (const auto named = VariableOf("SIMILE_SERVER")) return NamedServer{"SIMILE_SERVER=", *named};
  if (only_if_named) return NamedServer{"", kDefaultServer};
  const absl::StatusOr<std::optional<std::string>> configured = ConfiguredServer();
  if (!configured.ok()) return configured.status();
  return NamedServer{"", configured->value_or(kDefaultServer)};
}

absl::Status CheckClientFlags(ClientFlags& flags, bool only_if_named) {
  const absl::StatusOr<NamedServer> server = ServerOf(flags, only_if_named);
  if (!server.ok()) return server.status();
  absl::StatusOr<std::string> address = ParseServerAddress(server->address);
  if (!address.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}{}: {}", server->origin,
                                                  base::Quoted(server->address),
                                                  std::string(address.status().message())));
  }
  flags.address = *std::move(address);
  if (flags.timeout_s && !(*flags.timeout_s > 0)) {  // NaN fails this too
    return absl::InvalidArgumentError(
        fmt::format("--timeout {}: give more than 0 seconds, or inf to wait without a limit",
                    *flags.timeout_s));
  }
  auto security = ReadClientSecurity(flags.security_flags, flags.address);
  if (!security.ok()) return security.status();
  flags.security = *std::move(security);
  return absl::OkStatus();
}

// `books, films`; of many collections the first ones.
std::string FirstNames(const v1::ListCollectionsResponse& listed) {
  std::string names;
  const int count = std::min(listed.collections_size(), kNamesListed);
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + listed.collections(i).name();
  const int more = listed.collections_size() - count;
  return more == 0 ? names : fmt::format("{} and {} more", names, more);
}

}  // namespace

void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help,
                    const std::string& server_help) {
  command
      .Text("--server", flags.server, "HOST:PORT",
            server_help.empty()
                ? fmt::format(
                      "The server to call (default SIMILE_SERVER, else the one of SIMILE_CONFIG "
                      "and SIMILE_SERVER_PORT, else {})",
                      kDefaultServer)
                : server_help)
      .Real("--timeout", flags.timeout_s, "SECONDS",
            fmt::format("Give up after this long; inf: never ({})", timeout_help))
      .Switch("--json", flags.json, "Print JSON for programs")
      .Switch("--tls", flags.security_flags.tls, "Encrypt; the flags below imply it")
      .File("--ca", flags.security_flags.ca, "FILE",
            "Trust the authorities in this PEM file (default SIMILE_CA, else the machine's)")
      .File("--cert", flags.security_flags.certificate, "FILE", "Show this PEM certificate")
      .File("--key", flags.security_flags.key, "FILE", "Its private key")
      .Text("--server-name", flags.security_flags.server_name, "NAME",
            "The name in the server's certificate, if not the address's")
      .File("--token-file", flags.security_flags.token_file, "FILE",
            "Send the token in this file (default SIMILE_TOKEN_FILE, or SIMILE_TOKEN itself)")
      .Check([&flags, only_if_named = !server_help.empty()] {
        return CheckClientFlags(flags, only_if_named);
      });
  flags.command = &command.spec();
}

Connection Connect(const ClientFlags& flags, std::optional<double> timeout_default_s) {
  const std::optional<double> seconds = flags.timeout_s ? flags.timeout_s : timeout_default_s;
  std::optional<std::chrono::milliseconds> timeout;
  if (seconds && *seconds < kTimeoutSecondsMax) {
    timeout = std::chrono::milliseconds(std::max<long long>(1, std::llround(*seconds * 1e3)));
  }
  return {flags.address, timeout, flags.security, flags.command, !flags.timeout_s.has_value()};
}

absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                const std::optional<std::string>& name) {
  if (name) return connection.Get(*name);
  absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok()) return listed.status();
  if (listed->collections().empty()) {
    return absl::NotFoundError(
        fmt::format("the server at {} has no collections; load one with: simile load NAME FOLDER",
                    connection.address()));
  }
  if (listed->collections_size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("the server at {} has {} collections; name one with --collection: {}",
                    connection.address(), listed->collections_size(), FirstNames(*listed)));
  }
  return listed->collections(0);
}

absl::StatusOr<v1::Collection> ChooseCollection(const Connection& connection,
                                                std::optional<std::string>& name,
                                                std::optional<std::string>& other) {
  absl::StatusOr<v1::Collection> named = ChooseCollection(connection, std::as_const(name));
  if (!name || other || !absl::IsNotFound(named.status())) return named;
  const absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok() || listed->collections_size() != 1) return named;
  other = std::exchange(name, std::nullopt);
  return listed->collections(0);
}

}  // namespace simile::cli
