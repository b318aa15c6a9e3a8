#include "cli/client_flags.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace simile::cli {
namespace {

constexpr const char* kUsualServer = "127.0.0.1:50051";
// Longer waits mean "for ever" and would overflow a clock.
constexpr double kTimeoutSecondsMax = 1e6;

// The flag, else the environment, else the usual one.
std::string ServerOf(const ClientFlags& flags) {
  if (flags.server) return *flags.server;
  const char* named = std::getenv("SIMILE_SERVER");
  return named == nullptr || *named == '\0' ? kUsualServer : named;
}

}  // namespace

void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help) {
  command
      .Text("--server", flags.server, "HOST:PORT",
            fmt::format("The server to ask (default {}, or SIMILE_SERVER)", kUsualServer))
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

void AddQueryFlags(Command& command, QueryFlags& flags) {
  command
      .Text("--collection", flags.collection, "NAME",
            "The collection to search (default: the server's only one)")
      .Number("-k", flags.k, "COUNT", "Hits wanted (default 10)")
      .Number("--offset", flags.offset, "COUNT", "Best hits to skip (default 0)")
      .Real("--score-threshold", flags.score_threshold, "SCORE", "Leave out hits that score below")
      .List("--exclude", flags.exclude_ids, "ID,ID", "Items never to return")
      .Text("--filter", flags.filter, "TEXT",
            "Only items that pass: 'genres:\"Drama\" AND year >= 1990'; see `simile fields`")
      .List("--fields", flags.fields, "FIELD,FIELD", "Payload fields to return (default: all)");
  AddClientFlags(command, flags.client, fmt::format("default {:.0f}", kQueryTimeoutSeconds));
}

v1::SearchOptions OptionsOf(const QueryFlags& flags) {
  v1::SearchOptions options;
  if (flags.k) options.set_k(*flags.k);
  if (flags.offset) options.set_offset(*flags.offset);
  if (flags.score_threshold) {
    options.set_score_threshold(static_cast<float>(*flags.score_threshold));
  }
  for (const std::string& id : flags.exclude_ids) options.add_exclude_ids(id);
  if (flags.filter) options.set_filter(*flags.filter);
  for (const std::string& field : flags.fields) options.add_payload_fields(field);
  options.set_reply_bytes_max(kReplyBytesMax);
  return options;
}

}  // namespace simile::cli
