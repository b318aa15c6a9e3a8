// `load`, `reload`, `rollback` and `unload` change what a running server serves.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <absl/status/statusor.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error_detail.h"
#include "cli/client_flags.h"
#include "cli/collection_flags.h"
#include "cli/collection_text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/interrupt_message.h"
#include "cli/output_text.h"
#include "cli/progress.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

constexpr double kUnloadTimeoutSeconds = 10;

struct ChangeFlags {
  ClientFlags client;
  std::optional<std::string> name;
  std::optional<std::string> folder;
  std::optional<std::string> expected_snapshot;
  bool allow_shape_change = false;
  std::optional<double> min_overlap;
};

struct ServedChange {
  v1::Collection served;
  bool changed = true;  // false: this content was served already
};

// The call that load, reload or rollback makes.
//   before    the collection that is served under this name; empty if there is none
using ChangeCall = std::function<absl::StatusOr<v1::Collection>(
    const Connection& connection, const v1::Collection& before,
    const Connection::OnProgress& on_progress)>;

std::string GoesOnText(const ChangeFlags& flags) {
  return fmt::format("the change goes on at the server; `{}` shows it",
                     NextCommand(fmt::format("list {}", *flags.name), flags.client, {}));
}

//   verb  for the progress bar: "loading"
absl::StatusOr<ServedChange> MakeChange(const ChangeFlags& flags, const char* verb,
                                        const ChangeCall& change) {
  InterruptMessage interrupt;
  const Connection connection = Connect(flags.client, std::nullopt);
  const absl::StatusOr<v1::Collection> known = connection.Get(*flags.name);
  if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
  const v1::Collection before = known.value_or(v1::Collection());

  interrupt.Set(GoesOnText(flags));
  std::optional<ChangeProgressDisplay> display(
      std::in_place, fmt::format("{} {}", verb, *flags.name), flags.client.json);
  absl::StatusOr<v1::Collection> served =
      change(connection, before, [&](const auto& progress) { display->Set(progress); });
  display.reset();  // erases the bar
  if (absl::IsDeadlineExceeded(served.status())) {
    const std::string message(served.status().message());
    return base::WithMessage(served.status(), message + "; " + GoesOnText(flags));
  }
  if (!served.ok()) return served.status();
  const bool changed = before.snapshot_version() != served->snapshot_version();
  return ServedChange{*std::move(served), changed};
}

void PrintChange(const ServedChange& change, const ChangeFlags& flags) {
  fmt::print("{}\n", CollectionLine(change.served));
  const v1::Collection& served = change.served;
  if (!change.changed) {
    fmt::print("this content was served already; nothing was loaded{}\n",
               served.folder().empty() ? "" : "; the next reload reads " + served.folder());
  }
  if (change.changed && served.has_overlap()) fmt::print("{}\n", OverlapText(served));
  if (change.changed) fmt::print("{}", NotesText(served));
  const auto next = [&](const char* command) {
    return NextCommand(fmt::format("{} {}", command, change.served.name()), flags.client, {});
  };
  const std::string& former = change.served.rollback_snapshot_id();
  SuggestNext(former.empty()
                  ? next("list")
                  : fmt::format("{}  (returns to {})", next("rollback"), ShortSnapshotId(former)));
}

int RunChange(const ChangeFlags& flags, const char* verb, const ChangeCall& make) {
  const absl::StatusOr<ServedChange> change = MakeChange(flags, verb, make);
  if (!change.ok()) return Fail(change.status(), flags.client.json);
  if (!flags.client.json) {
    PrintChange(*change, flags);
    return kSucceeded;
  }
  nlohmann::ordered_json json = CollectionJson(change->served);
  json["served_already"] = !change->changed;
  fmt::print("{}", JsonLine(json));
  return kSucceeded;
}

int RunLoad(const ChangeFlags& flags) {
  return RunChange(flags, "loading",
                   [&](const Connection& connection, const v1::Collection& /*before*/,
                       const Connection::OnProgress& on_progress) {
                     v1::LoadCollectionRequest request;
                     request.set_collection(*flags.name);
                     request.set_folder(*flags.folder);
                     return connection.Load(request, on_progress);
                   });
}

// Starts a request with the fields that reload and rollback share.
template <class Request>
absl::StatusOr<Request> ReplacingRequest(const ChangeFlags& flags, const v1::Collection& before) {
  absl::StatusOr<std::string> expected = ExpectedSnapshotId(flags.expected_snapshot, before);
  if (!expected.ok()) return expected.status();
  Request request;
  request.set_collection(*flags.name);
  request.set_allow_shape_change(flags.allow_shape_change);
  request.set_expected_snapshot_id(*std::move(expected));
  return request;
}

int RunReload(const ChangeFlags& flags) {
  return RunChange(
      flags, "reloading",
      [&](const Connection& connection, const v1::Collection& before,
          const Connection::OnProgress& on_progress) -> absl::StatusOr<v1::Collection> {
        auto request = ReplacingRequest<v1::ReloadCollectionRequest>(flags, before);
        if (!request.ok()) return request.status();
        request->set_folder(flags.folder.value_or(""));
        if (flags.min_overlap) request->set_min_overlap(*flags.min_overlap);
        return connection.Reload(*request, on_progress);
      });
}

int RunRollback(const ChangeFlags& flags) {
  return RunChange(
      flags, "rolling back",
      [&](const Connection& connection, const v1::Collection& before,
          const Connection::OnProgress& on_progress) -> absl::StatusOr<v1::Collection> {
        auto request = ReplacingRequest<v1::RollbackCollectionRequest>(flags, before);
        if (!request.ok()) return request.status();
        return connection.Rollback(*request, on_progress);
      });
}

absl::Status Unload(const Connection& connection, const ChangeFlags& flags) {
  v1::UnloadCollectionRequest request;
  request.set_collection(*flags.name);
  if (flags.expected_snapshot) {
    const absl::StatusOr<v1::Collection> served = connection.Get(*flags.name);
    if (!served.ok()) return served.status();
    absl::StatusOr<std::string> expected = ExpectedSnapshotId(flags.expected_snapshot, *served);
    if (!expected.ok()) return expected.status();
    request.set_expected_snapshot_id(*std::move(expected));
  }
  return connection.Unload(request);
}

int RunUnload(const ChangeFlags& flags) {
  const Connection connection = Connect(flags.client, kUnloadTimeoutSeconds);
  if (absl::Status unloaded = Unload(connection, flags); !unloaded.ok()) {
    return Fail(unloaded, flags.client.json);
  }
  if (flags.client.json) {
    fmt::print("{{\"unloaded\":true}}\n");
    return kSucceeded;
  }
  fmt::print("{} is no longer served\n", Printable(*flags.name));
  SuggestNext(NextCommand("list", flags.client, {}));
  return kSucceeded;
}

constexpr const char* kUntilItServes = "default: wait until it serves";
constexpr const char* kNeedsChanges =
    "The server must have been started with --allow-changes.\n"
    "Ctrl-C and --timeout leave the change running; the same command again waits for it.";

void AddReplacingFlags(Command& command, ChangeFlags& flags) {
  command
      .Switch(
          "--allow-shape-change", flags.allow_shape_change,
          "Accept another number of dimensions, another metric, or other types of payload fields")
      .Text("--expect-snapshot", flags.expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags.client, kUntilItServes);
}

}  // namespace

void AddLoadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("load", "Load a folder as a new collection of a running server");
  command.Collection(flags->name, "What to call the collection")
      .Required()
      .Positional("FOLDER", flags->folder, "The folder, relative to the server's data root")
      .Paths(PathKind::kFolder)
      .Required();
  AddClientFlags(command, flags->client, kUntilItServes);
  command.Footer(fmt::format("simile load books books\n{}", kNeedsChanges)).Run([flags] {
    return RunLoad(*flags);
  });
}

void AddReloadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("reload", "Read a collection's folder again and swap it in");
  command.Collection(flags->name, "The collection")
      .Required()
      .Text("--folder", flags->folder, "FOLDER",
            "Read this folder instead, relative to the server's data root")
      .Paths(PathKind::kFolder)
      .Real("--min-overlap", flags->min_overlap, "SHARE",
            "Refuse it when less of the answers would stay the same: 0 to 1, and 0 takes any "
            "(default: "
            "the server's collections.min_overlap)");
  AddReplacingFlags(command, *flags);
  command
      .Footer(fmt::format(
          "simile reload films --folder films-2\n"
          "When the new files cannot be loaded, the server keeps serving the old ones.\n{}",
          kNeedsChanges))
      .Run([flags] { return RunReload(*flags); });
}

void AddRollbackCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command =
      line.Add("rollback", "Return to what a collection served before its last load or reload");
  command.Collection(flags->name, "The collection").Required();
  AddReplacingFlags(command, *flags);
  command
      .Footer(fmt::format("simile rollback films\n"
                          "Reads its folder again, which must still hold that content, unless a "
                          "search still uses it.\n{}",
                          kNeedsChanges))
      .Run([flags] { return RunRollback(*flags); });
}

void AddUnloadCommand(CommandLine& line) {
  auto flags = std::make_shared<ChangeFlags>();
  Command command = line.Add("unload", "Stop serving a collection");
  command.Collection(flags->name, "The collection")
      .Required()
      .Text("--expect-snapshot", flags->expected_snapshot, "ID", kExpectSnapshotHelp);
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kUnloadTimeoutSeconds));
  command.Footer("The server must have been started with --allow-changes.").Run([flags] {
    return RunUnload(*flags);
  });
}

}  // namespace simile::cli
