#include <memory>

#include "cli/collection_change.h"
#include "cli/commands.h"

namespace simile::cli {
namespace {

struct LoadFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::string> folder;
};

}  // namespace

void AddLoadCommand(CommandLine& line) {
  auto flags = std::make_shared<LoadFlags>();
  Command command = line.Add("load", "Load a folder as a new collection of a running server");
  command.Positional("NAME", flags->name, "What to call the collection")
      .Required()
      .Positional("FOLDER", flags->folder, "The folder, relative to the server's data root")
      .Required();
  AddClientFlags(command, flags->client, "default: wait until it serves");
  command.Footer("The server must have been started with --allow-changes and --data-root.")
      .Run([flags] {
        return ShowChange(flags->client, "loading", *flags->name,
                          [&](const Connection& connection) {
                            return connection.Load(*flags->name, *flags->folder);
                          });
      });
}

}  // namespace simile::cli
