#include <memory>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

namespace simile::cli {
namespace {

// The exit codes besides kSucceeded.
constexpr int kExitNotServing = 1;
constexpr int kExitUnreachable = 2;

constexpr double kHealthTimeoutSeconds = 2;
constexpr const char* kLiveness = "liveness";  // the name under which the server reports it

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

absl::Status UnknownName(const HealthFlags& flags, const std::string& address) {
  return absl::NotFoundError(
      flags.liveness
          ? fmt::format("the server at {} does not report its liveness", address)
          : fmt::format("the server at {} has no collection \"{}\"", address, *flags.collection));
}

void PrintHealth(const HealthFlags& flags, Health health) {
  if (flags.liveness) {
    fmt::print("{}\n", health == Health::kServing ? "alive" : "stopping");
    return;
  }
  fmt::print("{}\n", health == Health::kServing ? "serving" : "not serving");
  if (health != Health::kServing) SuggestNext("simile list");
}

int RunHealth(const HealthFlags& flags) {
  if (flags.liveness && flags.collection) {
    Fail(absl::InvalidArgumentError("--liveness and --collection cannot be combined; give one"));
    return kWrongUsage;
  }
  const Connection connection = Connect(flags.client, kHealthTimeoutSeconds);
  const absl::StatusOr<Health> health = connection.CheckHealth(flags.checked_name());
  const HealthReport report = Report(health);
  if (flags.client.json) fmt::print("{{\"status\":\"{}\"}}\n", report.status);
  if (absl::IsNotFound(health.status())) {
    Fail(UnknownName(flags, connection.address()));
  } else if (!health.ok()) {
    Fail(health.status());
  } else if (!flags.client.json) {
    PrintHealth(flags, *health);
  }
  return report.exit_code;
}

}  // namespace

void AddHealthCommand(CommandLine& line) {
  auto flags = std::make_shared<HealthFlags>();
  Command command =
      line.Add("health", "Check whether a server, or one of its collections, is serving");
  command
      .Text("--collection", flags->collection, "NAME",
            "Check this collection (default: the whole server)")
      .Switch("--liveness", flags->liveness,
              "Check only that the process can answer, whatever it loads or serves");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kHealthTimeoutSeconds));
  command
      .Footer(
          "Exit codes: 0 serving, 1 not serving, 2 unreachable.\n"
          "A supervisor that restarts servers checks --liveness; a balancer that sends calls does "
          "not.")
      .Run([flags] { return RunHealth(*flags); });
}

}  // namespace simile::cli
