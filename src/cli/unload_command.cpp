#include <memory>

#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/exit_code.h"

namespace simile::cli {
namespace {

constexpr double kUnloadTimeoutSeconds = 10;

struct UnloadFlags {
  ClientFlags client;
  std::optional<std::string> name;
};

int RunUnload(const UnloadFlags& flags) {
  const Connection connection = Connect(flags.client, kUnloadTimeoutSeconds);
  if (absl::Status unloaded = connection.Unload(*flags.name); !unloaded.ok()) {
    return Fail(unloaded);
  }
  if (flags.client.json) {
    fmt::print("{{\"unloaded\":true}}\n");
    return kSucceeded;
  }
  fmt::print("{} is no longer served\n", Printable(*flags.name));
  SuggestNext("simile list");
  return kSucceeded;
}

}  // namespace

void AddUnloadCommand(CommandLine& line) {
  auto flags = std::make_shared<UnloadFlags>();
  Command command = line.Add("unload", "Stop serving a collection");
  command.Positional("NAME", flags->name, "The collection").Required();
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kUnloadTimeoutSeconds));
  command.Footer("The server must have been started with --allow-changes.").Run([flags] {
    return RunUnload(*flags);
  });
}

}  // namespace simile::cli
