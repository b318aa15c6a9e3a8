#include "cli/client_flags.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace simile::cli {
namespace {

constexpr const char* kDefaultServer = "127.0.0.1:50051";
// Longer timeouts mean no limit: they would overflow the clock.
constexpr double kTimeoutSecondsMax = 1e6;
constexpr int kNamesListed = 10;

// The flag, else the environment, else the default.
std::string ServerOf(const ClientFlags& flags) {
  if (flags.server) return *flags.server;
  const char* named = std::getenv("SIMILE_SERVER");
  return named == nullptr || *named == '\0' ? kDefaultServer : named;
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

void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help) {
  command
      .Text("--server", flags.server, "HOST:PORT",
            fmt::format("The server to call (default {}, or SIMILE_SERVER)", kDefaultServer))
      .Real("--timeout", flags.timeout_s, "SECONDS",
            fmt::format("Give up after this long ({})", timeout_help))
      .Switch("--json", flags.json, "Print JSON for programs");
}

Connection Connect(const ClientFlags& flags, std::optional<double> timeout_default_s) {
  const std::optional<double> seconds = flags.timeout_s ? flags.timeout_s : timeout_default_s;
  std::optional<std::chrono::milliseconds> timeout;
  if (seconds && *seconds < kTimeoutSecondsMax) {
    timeout = std::chrono::milliseconds(std::llround(std::max(0.0, *seconds) * 1e3));
  }
  return {ServerOf(flags), timeout};
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

}  // namespace simile::cli
