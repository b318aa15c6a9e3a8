#include <memory>

#include "cli/collection_change.h"
#include "cli/commands.h"

namespace simile::cli {
namespace {

struct ReloadFlags {
  ClientFlags client;
  std::optional<std::string> name;
};

}  // namespace

void AddReloadCommand(CommandLine& line) {
  auto flags = std::make_shared<ReloadFlags>();
  Command command = line.Add("reload", "Read a collection's folder again and swap it in");
  command.Positional("NAME", flags->name, "The collection").Required();
  AddClientFlags(command, flags->client, "default: wait until it serves");
  command
      .Footer(
          "What is served stays as it is when the new files are not fit to serve.\n"
          "The server must have been started with --allow-changes.")
      .Run([flags] {
        return ShowChange(
            flags->client, "reloading", *flags->name,
            [&](const Connection& connection) { return connection.Reload(*flags->name); });
      });
}

}  // namespace simile::cli
