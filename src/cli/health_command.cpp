#include <memory>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

namespace simile::cli {
namespace {

constexpr double kHealthTimeoutSeconds = 2;

struct HealthFlags {
  ClientFlags client;
  std::optional<std::string> collection;
};

struct HealthReport {
  const char* status;  // for programs
  int exit_code;
};

HealthReport Report(const absl::StatusOr<Health>& health) {
  if (absl::IsNotFound(health.status())) return {"UNKNOWN", kNotServing};
  if (!health.ok()) return {"UNREACHABLE", kUnreachable};
  return *health == Health::kServing ? HealthReport{"SERVING", kSucceeded}
                                     : HealthReport{"NOT_SERVING", kNotServing};
}

int RunHealth(const HealthFlags& flags) {
  const Connection connection = Connect(flags.client, kHealthTimeoutSeconds);
  const std::string collection = flags.collection.value_or("");
  const absl::StatusOr<Health> health = connection.CheckHealth(collection);
  const HealthReport report = Report(health);
  if (flags.client.json) fmt::print("{{\"status\":\"{}\"}}\n", report.status);
  if (absl::IsNotFound(health.status())) {
    Fail(absl::NotFoundError(fmt::format("the server at {} has no collection \"{}\"",
                                         connection.address(), collection)));
  } else if (!health.ok()) {
    Fail(health.status());
  } else if (!flags.client.json) {
    fmt::print("{}\n", *health == Health::kServing ? "serving" : "not serving");
    if (*health != Health::kServing) SuggestNext("simile list");
  }
  return report.exit_code;
}

}  // namespace

void AddHealthCommand(CommandLine& line) {
  auto flags = std::make_shared<HealthFlags>();
  Command command =
      line.Add("health", "Check whether a server, or one of its collections, is serving");
  command.Text("--collection", flags->collection, "NAME",
               "Check this collection (default: the whole server)");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kHealthTimeoutSeconds));
  command.Footer("Exit codes: 0 serving, 1 not serving, 2 unreachable.").Run([flags] {
    return RunHealth(*flags);
  });
}

}  // namespace simile::cli
