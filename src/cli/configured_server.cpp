#include "cli/configured_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/message_text.h"
#include "cli/environment.h"
#include "cli/named_folder.h"

namespace simile::cli {
namespace {

constexpr std::array kVariables = {"SIMILE_CONFIG", "SIMILE_SERVER_LISTEN", "SIMILE_SERVER_PORT",
                                   "SIMILE_SERVER_PORT_FILE"};

std::string HostOf(const std::string& listen) {
  if (listen == "::" || listen == "0.0.0.0") return "127.0.0.1";
  return listen.find(':') == std::string::npos ? listen : fmt::format("[{}]", listen);
}

// The port that a server on any free one has written.
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

}  // namespace

absl::StatusOr<std::optional<std::string>> ConfiguredServer() {
  const auto is_set = [](const char* name) { return VariableOf(name).has_value(); };
  if (std::ranges::none_of(kVariables, is_set)) return std::optional<std::string>();
  const absl::StatusOr<app::ConfigReading> reading = ReadConfigFor(std::nullopt, {}, std::nullopt);
  if (!reading.ok()) return reading.status();
  const app::Config& config = reading->config;
  absl::StatusOr<std::uint16_t> port = config.port;
  if (config.port == 0) port = WrittenPort(config.port_file.native());
  if (!port.ok()) return port.status();
  return std::optional(fmt::format("{}:{}", HostOf(config.listen), *port));
}

}  // namespace simile::cli
