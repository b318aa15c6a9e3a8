#include "cli/server_address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace simile::cli {
namespace {

constexpr std::string_view kDefaultHost = "127.0.0.1";
constexpr std::string_view kDefaultPort = "50051";
constexpr const char* kWanted = "give HOST:PORT, such as 127.0.0.1:50051";

// The bytes of the host at the text's start, with the brackets of an IPv6 address; 0 for none.
std::size_t HostLength(std::string_view text) {
  if (!text.starts_with('[')) return std::min(text.find(':'), text.size());
  const std::size_t end = text.find(']');
  return end == std::string_view::npos ? 0 : end + 1;
}

// A number alone is a port, or an IPv4 address that nobody means.
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

}  // namespace simile::cli
