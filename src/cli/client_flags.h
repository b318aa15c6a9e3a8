#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/command_line.h"
#include "cli/connection.h"
#include "simile/v1/search.pb.h"

namespace simile::cli {

// What every command that talks to a server takes.
struct ClientFlags {
  std::optional<std::string> server;
  std::optional<double> timeout_s;
  bool json = false;
};
// timeout_help: what happens without --timeout, as the help puts it.
void AddClientFlags(Command& command, ClientFlags& flags, const std::string& timeout_help);
// timeout_default_s: nothing lets a call take as long as it takes.
Connection Connect(const ClientFlags& flags, std::optional<double> timeout_default_s);

// What `search`, `similar` and `recommend` have alike.
struct QueryFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  std::optional<std::uint32_t> k;
  std::optional<std::uint32_t> offset;
  std::optional<double> score_threshold;
  std::vector<std::string> exclude_ids;
  std::optional<std::string> filter;
  std::vector<std::string> fields;
  std::optional<std::string> group_by;
  std::optional<std::uint32_t> group_size;
  std::optional<double> diversity;  // MMR lambda
  std::optional<std::uint32_t> candidates;
  bool paged = false;
  std::optional<std::string> page_token;
};
void AddQueryFlags(Command& command, QueryFlags& flags);
// Errors: kInvalidArgument for a flag that needs another.
absl::StatusOr<v1::SearchOptions> OptionsOf(const QueryFlags& flags);

// How long these three wait for an answer unless told.
inline constexpr double kQueryTimeoutSeconds = 10;

}  // namespace simile::cli
