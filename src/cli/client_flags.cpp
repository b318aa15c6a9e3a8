#include "cli/client_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/message_text.h"
#include "cli/environment.h"
#include "cli/output_text.h"
#include "cli/settings_flags.h"

namespace simile::cli {
namespace {

constexpr const char* kDefaultServer = "127.0.0.1:50051";
// A longer timeout means no limit, because it would overflow the clock.
constexpr double kTimeoutSecondsMax = 1e6;
constexpr int kNamesListed = 10;
constexpr std::string_view kDefaultHost = "127.0.0.1";
constexpr std::string_view kDefaultPort = "50051";
constexpr const char* kWanted = "give HOST:PORT, such as 127.0.0.1:50051";

// The length of the host at the start of the text, including the brackets of an IPv6 address; 0 if
// there is no host.
std::size_t HostLength(std::string_view text) {
  if (!text.starts_with('[')) return std::min(text.find(':'), text.size());
  const std::size_t end = text.find(']');
  return end == std::string_view::npos ? 0 : end + 1;
}

// Whether a text is a host. Refuses a number alone: it is a port, or an unusual form of an IPv4
// address.
bool IsHost(std::string_view text) {
  return !text.empty() && text != "[]" &&
         text.find_first_not_of("0123456789") != std::string_view::npos &&
         text.find_first_of(" \t\r\n@/") == std::string_view::npos;
}

bool IsPort(std::string_view text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port != 0;
}

absl::Status RefuseExtra(std::string_view extra) {
  return absl::InvalidArgumentError(fmt::format("give HOST:PORT, without \"{}\"", extra));
}

constexpr std::array kVariables = {"SIMILE_CONFIG", "SIMILE_SERVER_LISTEN", "SIMILE_SERVER_PORT",
                                   "SIMILE_SERVER_PORT_FILE"};

std::string ToConnectHost(const std::string& listen) {
  if (listen == "::" || listen == "0.0.0.0") return "127.0.0.1";
  return listen.find(':') == std::string::npos ? listen : fmt::format("[{}]", listen);
}

// The port that a server on a free port has written to its port file.
absl::StatusOr<std::uint16_t> WrittenPort(const std::string& file) {
  constexpr std::string_view kAdvice =
      "give --server HOST:PORT, or set server.port_file for the server and for this command";
  if (file.empty()) {
    return absl::UnavailableError(
        fmt::format("server.port is 0, which takes any free port; {}", kAdvice));
  }
  constexpr std::size_t kBytesMax = 16;
  const absl::StatusOr<std::string> text = base::ReadWholeFile(file, kBytesMax);
  if (!text.ok()) return text.status();
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error == std::errc() && port != 0) return port;
  return absl::UnavailableError(fmt::format(
      "{}: {}; the server writes it once it listens", file,
      text->empty() ? "there is no port file" : fmt::format("{} is no port", base::Quoted(*text))));
}

// HOST:PORT of the server that this environment's settings describe (SIMILE_CONFIG,
// SIMILE_SERVER_LISTEN, _PORT and _PORT_FILE), as a client on the same machine reaches it. The host
// is 127.0.0.1 if the server listens on every address. The port is read from server.port_file if
// server.port is 0. Nothing if none of the four variables is set. Errors: app::ReadConfig's;
// kUnavailable for port 0 if there is no port file, or if it holds no port.
absl::StatusOr<std::optional<std::string>> ConfiguredServer() {
  const auto is_set = [](const char* name) { return ReadVariable(name).has_value(); };
  if (std::ranges::none_of(kVariables, is_set)) return std::optional<std::string>();
  const absl::StatusOr<app::ConfigReading> reading = ReadConfigFor(std::nullopt, {}, std::nullopt);
  if (!reading.ok()) return reading.status();
  const app::Config& config = reading->config;
  absl::StatusOr<std::uint16_t> port = config.port;
  if (config.port == 0) port = WrittenPort(config.port_file.native());
  if (!port.ok()) return port.status();
  return std::optional(fmt::format("{}:{}", ToConnectHost(config.listen), *port));
}

// The server's address, and where it comes from, for messages.
struct NamedServer {
  std::string origin;  // "--server ", "SIMILE_SERVER="
  std::string address;
};

// Takes the flag, or else SIMILE_SERVER, or else the server of this environment's settings, or else
// the default.
//   only_if_named  the command calls a server only if --server names one; then does not read the
//                  settings
// Errors: ConfiguredServer's.
absl::StatusOr<NamedServer> ChooseServer(const ClientFlags& flags, bool only_if_named) {
  if (flags.server) return NamedServer{"--server ", *flags.server};
  if (const auto named = ReadVariable("SIMILE_SERVER"))
    return NamedServer{"SIMILE_SERVER=", *named};
  if (only_if_named) return NamedServer{"", kDefaultServer};
  const absl::StatusOr<std::optional<std::string>> configured = ConfiguredServer();
  if (!configured.ok()) return configured.status();
  return NamedServer{"", configured->value_or(kDefaultServer)};
}

absl::Status CheckClientFlags(ClientFlags& flags, bool only_if_named) {
  const absl::StatusOr<NamedServer> server = ChooseServer(flags, only_if_named);
  if (!server.ok()) return server.status();
  absl::StatusOr<std::string> address = ParseServerAddress(server->address);
  if (!address.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}{}: {}", server->origin,
                                                  base::Quoted(server->address),
                                                  std::string(address.status().message())));
  }
  flags.address = *std::move(address);
  if (flags.timeout_s && !(*flags.timeout_s > 0)) {  // NaN is refused, too
    return absl::InvalidArgumentError(
        fmt::format("--timeout {}: give more than 0 seconds, or inf to wait without a limit",
                    *flags.timeout_s));
  }
  auto security = ReadClientSecurity(flags.security_flags, flags.address);
  if (!security.ok()) return security.status();
  flags.security = *std::move(security);
  return absl::OkStatus();
}

// `books, films`; only the first kNamesListed of many collections.
std::string FirstNames(const v1::ListCollectionsResponse& listed) {
  std::string names;
  const int count = std::min(listed.collections_size(), kNamesListed);
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : ", ") + listed.collections(i).name();
  const int more = listed.collections_size() - count;
  return more == 0 ? names : fmt::format("{} and {} more", names, more);
}

}  // namespace

absl::StatusOr<std::string> ParseServerAddress(std::string_view text) {
  constexpr std::string_view kSchemeEnd = "://";
  if (const std::size_t at = text.find(kSchemeEnd); at != std::string_view::npos) {
    return RefuseExtra(text.substr(0, at + kSchemeEnd.size()));
  }
  const std::size_t path = text.find('/');
  if (path != std::string_view::npos && path > 0) return RefuseExtra(text.substr(path));
  const std::size_t host_length = HostLength(text);
  const bool is_port_alone = text.starts_with(':') && text.find(':', 1) == std::string_view::npos;
  const std::string_view host = is_port_alone ? kDefaultHost : text.substr(0, host_length);
  const std::string_view rest = text.substr(host_length);
  if (rest.starts_with(':') && rest.find(':', 1) != std::string_view::npos) {
    return absl::InvalidArgumentError("an IPv6 address needs brackets: give [ADDRESS]:PORT");
  }
  if (!IsHost(host) || (!rest.empty() && rest.front() != ':')) {
    return absl::InvalidArgumentError(kWanted);
  }
  if (rest.empty()) return fmt::format("{}:{}", host, kDefaultPort);
  const std::string_view port = rest.substr(1);
  if (port.empty()) {
    return absl::InvalidArgumentError(fmt::format("the port is missing; {}", kWanted));
  }
  if (!IsPort(port)) {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is no port; give 1 to 65535", port));
  }
  return fmt::format("{}:{}", host, port);
}

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
      .File("--key", flags.security_flags.key, "FILE", "The private key of --cert")
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

std::string NextCommand(std::string_view words, const ClientFlags& client,
                        const std::optional<std::string>& collection) {
  std::string command = fmt::format("simile {}", words);
  if (collection) command += fmt::format(" --collection {}", ShellWord(*collection));
  if (client.server) command += fmt::format(" --server {}", ShellWord(*client.server));
  return Printable(command);
}

}  // namespace simile::cli
