#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

// The exit codes of `health`, besides kSucceeded and kWrongUsage.
constexpr int kExitNotServing = 1;
constexpr int kExitUnreachable = 2;

constexpr double kHealthTimeoutSeconds = 2;
constexpr const char* kLiveness = "liveness";  // the health service's name for the process

struct HealthFlags {
  ClientFlags client;
  std::optional<std::string> collection;
  bool liveness = false;

  std::string checked_name() const { return liveness ? kLiveness : collection.value_or(""); }
};

struct HealthReport {
  const char* status;  // for programs
  int exit_code;
};

HealthReport Report(const absl::StatusOr<Health>& health) {
  if (absl::IsNotFound(health.status())) return {"UNKNOWN", kExitNotServing};
  if (!health.ok()) return {"UNREACHABLE", kExitUnreachable};
  return *health == Health::kServing ? HealthReport{"SERVING", kSucceeded}
                                     : HealthReport{"NOT_SERVING", kExitNotServing};
}

absl::Status CheckNames(const HealthFlags& flags) {
  if (!flags.liveness || !flags.collection) return absl::OkStatus();
  return absl::InvalidArgumentError("--liveness and --collection cannot be combined; give one");
}

// The error of a name that the health service does not know. For a collection it is the server's
// own error, which lists the served ones.
absl::Status UnknownName(const HealthFlags& flags, const Connection& connection) {
  if (flags.liveness || !flags.collection) {
    return absl::NotFoundError(
        fmt::format("the server at {} does not report its health", connection.address()));
  }
  const absl::StatusOr<v1::Collection> known = connection.Get(*flags.collection);
  if (!known.ok()) return known.status();
  return absl::NotFoundError(fmt::format("{} was not served a moment ago", *flags.collection));
}

// The status, and the error if the check failed, as one line of JSON.
std::string HealthJson(const HealthReport& report, const absl::Status& error) {
  nlohmann::ordered_json json = {{"status", report.status}};
  if (!error.ok()) json["error"] = ErrorObject(error);
  return JsonLine(json);
}

// Why a server that answers does not serve, from the states of its collections: `: films is
// loading`. Empty if they may not be listed.
std::string NotServingText(const Connection& connection) {
  const absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok()) return "";
  for (const auto& [state, text] : {std::pair(v1::Collection::STATE_LOADING, "is loading"),
                                    std::pair(v1::Collection::STATE_FAILED, "did not load")}) {
    const auto& all = listed->collections();
    const auto found = std::ranges::find(all, state, &v1::Collection::state);
    if (found != all.end()) return fmt::format(": {} {}", Printable(found->name()), text);
  }
  return "";
}

void PrintHealth(const HealthFlags& flags, const Connection& connection, Health health) {
  if (flags.liveness) {
    fmt::print("{}\n", health == Health::kServing ? "alive" : "stopping");
    return;
  }
  if (health == Health::kServing) {
    fmt::print("serving\n");
  } else {
    fmt::print("not serving{}\n", flags.collection ? "" : NotServingText(connection));
  }
  if (health != Health::kServing) SuggestNext(NextCommand("list", flags.client, {}));
}

int RunHealth(const HealthFlags& flags) {
  const Connection connection = Connect(flags.client, kHealthTimeoutSeconds);
  const absl::StatusOr<Health> health = connection.CheckHealth(flags.checked_name());
  const HealthReport report = Report(health);
  const absl::Status error =
      absl::IsNotFound(health.status()) ? UnknownName(flags, connection) : health.status();
  if (flags.client.json) {
    fmt::print("{}", HealthJson(report, error));
    std::fflush(stdout);  // so that the message follows it
  }
  if (!error.ok()) {
    Fail(error);
  } else if (!flags.client.json) {
    PrintHealth(flags, connection, *health);
  }
  return report.exit_code;
}

}  // namespace

void AddHealthCommand(CommandLine& line) {
  auto flags = std::make_shared<HealthFlags>();
  Command command =
      line.Add("health", "Check whether a server, or one of its collections, is serving");
  command.Collection(flags->collection, "Check this collection (default: the whole server)")
      .Switch("--liveness", flags->liveness,
              "Check only that the process can answer, whatever it loads or serves")
      .Check([flags] { return CheckNames(*flags); });
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kHealthTimeoutSeconds));
  command
      .Footer(
          "Exit codes: 0 serving, 1 not serving, 2 unreachable.\n"
          "A supervisor that restarts servers checks --liveness; a balancer that sends calls does "
          "not.")
      .Run([flags] { return RunHealth(*flags); });
}

}  // namespace simile::cli
