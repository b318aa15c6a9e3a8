// `load`, `reload` and `unload` change what a running server serves.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <absl/status/statusor.h>
#include <fmt/format.h>

#include "cli/client_flags.h"
#include "cli/collection_text.h"
#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/exit_code.h"
#include "cli/progress_bar.h"

namespace simile::cli {
namespace {

constexpr double kProgressTimeoutSeconds = 2;  // of one call for the progress
constexpr double kUnloadTimeoutSeconds = 10;

struct ChangeFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::string> folder;  // `load` only
};

using ChangeCall = std::function<absl::StatusOr<v1::Collection>(const Connection&)>;

// Makes the call while a bar shows the progress that the server reports.
absl::StatusOr<v1::Collection> ChangeWithProgress(const ChangeFlags& flags, const char* verb,
                                                  const ChangeCall& change) {
  const Connection connection = Connect(flags.client, std::nullopt);
  ClientFlags progress_flags = flags.client;
  progress_flags.timeout_s = kProgressTimeoutSeconds;
  const Connection progress = Connect(progress_flags, std::nullopt);
  const ProgressBar bar(fmt::format("{} {}", verb, *flags.name), [&]() -> std::optional<double> {
    const absl::StatusOr<v1::Collection> now = progress.Get(*flags.name);
    if (!now.ok()) return std::nullopt;
    return now->progress();
  });
  return change(connection);
}

//   verb  the label of the progress bar: "loading"
int RunChange(const ChangeFlags& flags, const char* verb, const ChangeCall& change) {
  const absl::StatusOr<v1::Collection> changed = ChangeWithProgress(flags, verb, change);
  if (!changed.ok()) return Fail(changed.status());
  if (flags.client.json) {
    fmt::print("{}", CollectionJson(*changed));
    return kSucceeded;
  }
  fmt::print("{}\n", CollectionLine(*changed));
  SuggestNext("simile list " + *flags.name);
  return kSucceeded;
}

int RunUnload(const ChangeFlags& flags) {
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

void AddLoadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("load", "Load a folder as a new collection of a running server");
  command.Positional("NAME", flags->name, "What to call the collection")
      .Required()
      .Positional("FOLDER", flags->folder, "The folder, relative to the server's data root")
      .Required();
  AddClientFlags(command, flags->client, "default: wait until it serves");
  command.Footer("The server must have been started with --allow-changes and --data-root.")
      .Run([flags] {
        return RunChange(*flags, "loading", [&](const Connection& connection) {
          return connection.Load(*flags->name, *flags->folder);
        });
      });
}

void AddReloadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("reload", "Read a collection's folder again and swap it in");
  command.Positional("NAME", flags->name, "The collection").Required();
  AddClientFlags(command, flags->client, "default: wait until it serves");
  command
      .Footer(
          "When the new files cannot be loaded, the server keeps serving the old ones.\n"
          "The server must have been started with --allow-changes.")
      .Run([flags] {
        return RunChange(*flags, "reloading", [&](const Connection& connection) {
          return connection.Reload(*flags->name);
        });
      });
}

void AddUnloadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("unload", "Stop serving a collection");
  command.Positional("NAME", flags->name, "The collection").Required();
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kUnloadTimeoutSeconds));
  command.Footer("The server must have been started with --allow-changes.").Run([flags] {
    return RunUnload(*flags);
  });
}

}  // namespace simile::cli
