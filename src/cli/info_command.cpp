#include <memory>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/server_text.h"

namespace simile::cli {
namespace {

constexpr double kInfoTimeoutSeconds = 10;

struct InfoFlags {
  ClientFlags client;
  bool limits = false;
};

int RunInfo(const InfoFlags& flags) {
  const Connection connection = Connect(flags.client, kInfoTimeoutSeconds);
  const absl::StatusOr<v1::GetServerInfoResponse> info = connection.GetServerInfo();
  if (!info.ok()) return Fail(info.status(), flags.client.json);
  if (flags.client.json) {
    fmt::print("{}", InfoJson(*info));
    return kSucceeded;
  }
  if (flags.limits) {
    fmt::print("{}", LimitsTable(*info, StandardOutput()));
    return kSucceeded;
  }
  fmt::print("{}", InfoText(*info, connection.address(), connection.security().names_caller(),
                            StandardOutput()));
  SuggestNext(NextCommand("list", flags.client, {}));
  return kSucceeded;
}

}  // namespace

void AddInfoCommand(CommandLine& line) {
  auto flags = std::make_shared<InfoFlags>();
  Command command = line.Add("info", "Show a server's version, backend, limits and abilities");
  command.Switch("--limits", flags->limits, "Show every bound on calls, with its unit");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kInfoTimeoutSeconds));
  command.Footer("simile info --json").Run([flags] { return RunInfo(*flags); });
}

}  // namespace simile::cli
