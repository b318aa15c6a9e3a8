#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/client_flags.h"
#include "cli/collection_text.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/server_text.h"

namespace simile::cli {
namespace {

constexpr double kListTimeoutSeconds = 10;

struct ListFlags {
  ClientFlags client;
  std::optional<std::string> name;
};

int ShowOne(const Connection& connection, const ListFlags& flags) {
  const absl::StatusOr<v1::Collection> collection = connection.Get(*flags.name);
  if (!collection.ok()) return Fail(collection.status(), flags.client.json);
  if (flags.client.json) {
    fmt::print("{}", JsonLine(CollectionJson(*collection)));
    return kSucceeded;
  }
  fmt::print("{}", CollectionDetails(*collection, StandardOutput()));
  if (!collection->fields().empty()) {
    SuggestNext(NextCommand(fmt::format("fields {}", collection->name()), flags.client, {}));
  }
  return kSucceeded;
}

int ShowAll(const Connection& connection, const ListFlags& flags) {
  const absl::StatusOr<v1::ListCollectionsResponse> listed = connection.List();
  if (!listed.ok()) return Fail(listed.status(), flags.client.json);
  if (flags.client.json) {
    fmt::print("{}", CollectionsJson(*listed));
    return kSucceeded;
  }
  if (listed->collections().empty()) {
    fmt::print("no collections\n");
    SuggestNext(NextCommand("load NAME FOLDER", flags.client, {}));
    return kSucceeded;
  }
  fmt::print("{}", CollectionTable(*listed, StandardOutput()));
  const std::string device_memory = DeviceMemoryTable(listed->backend(), StandardOutput());
  if (!device_memory.empty()) fmt::print("\n{}", device_memory);
  SuggestNext(NextCommand(fmt::format("list {}", listed->collections(0).name()), flags.client, {}));
  return kSucceeded;
}

}  // namespace

void AddListCommand(CommandLine& line) {
  auto flags = std::make_shared<ListFlags>();
  Command command = line.Add("list", "Show what a server serves");
  command.Collection(flags->name, "Show this collection in detail: memory, fields, files, notes");
  AddClientFlags(command, flags->client, fmt::format("default {:.0f}", kListTimeoutSeconds));
  command.Footer("simile list films").Run([flags] {
    const Connection connection = Connect(flags->client, kListTimeoutSeconds);
    return flags->name ? ShowOne(connection, *flags) : ShowAll(connection, *flags);
  });
}

}  // namespace simile::cli
