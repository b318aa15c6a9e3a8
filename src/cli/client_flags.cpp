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
      .Text("--group-by", flags.group_by, "FIELD",
            "The best groups of items that share a keyword, in place of the best items")
      .Number("--group-size", flags.group_size, "COUNT", "Items of each group (default 1)")
      .Real("--diversity", flags.diversity, "LAMBDA",
            "Items unlike each other: 1 ranks by score alone, 0 by difference (MMR)")
      .Number("--candidates", flags.candidates, "COUNT",
              "Best items that --diversity chooses from (default 10 per hit, at least 100)")
      .Switch("--paged", flags.paged, "Print a token for the next page")
      .Text("--page-token", flags.page_token, "TOKEN",
            "The page that this token is for; all other flags as they were")
      .List("--fields", flags.fields, "FIELD,FIELD", "Payload fields to return (default: all)");
  AddClientFlags(command, flags.client, fmt::format("default {:.0f}", kQueryTimeoutSeconds));
}

absl::StatusOr<v1::SearchOptions> OptionsOf(const QueryFlags& flags) {
  if (flags.group_size && !flags.group_by) {
    return absl::InvalidArgumentError("--group-size is of the groups of --group-by FIELD");
  }
  if (flags.candidates && !flags.diversity) {
    return absl::InvalidArgumentError("--candidates are what --diversity LAMBDA chooses from");
  }
  v1::SearchOptions options;
  if (flags.k) options.set_k(*flags.k);
  if (flags.offset) options.set_offset(*flags.offset);
  if (flags.score_threshold) {
    options.set_score_threshold(static_cast<float>(*flags.score_threshold));
  }
  for (const std::string& id : flags.exclude_ids) options.add_exclude_ids(id);
  if (flags.filter) options.set_filter(*flags.filter);
  if (flags.group_by) options.mutable_group_by()->set_field(*flags.group_by);
  if (flags.group_size) options.mutable_group_by()->set_group_size(*flags.group_size);
  if (flags.diversity) {
    options.mutable_diversity()->set_lambda(static_cast<float>(*flags.diversity));
  }
  if (flags.candidates) options.mutable_diversity()->set_candidates(*flags.candidates);
  options.set_paged(flags.paged);
  if (flags.page_token) options.set_page_token(*flags.page_token);
  for (const std::string& field : flags.fields) options.add_payload_fields(field);
  options.set_reply_bytes_max(kReplyBytesMax);
  return options;
}

}  // namespace simile::cli
