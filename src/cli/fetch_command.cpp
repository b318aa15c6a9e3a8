#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/item_flags.h"
#include "cli/item_text.h"
#include "cli/json_line.h"

namespace simile::cli {
namespace {

struct FetchFlags {
  ItemFlags item;
  std::vector<std::string> ids;
  bool with_vectors = false;
};

std::string FetchedJson(const std::string& collection, const v1::FetchResponse& fetched) {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const v1::Item& item : fetched.items()) items.push_back(ItemJson(item));
  return JsonLine({{"collection", collection},
                   {"snapshot_id", fetched.snapshot_id()},
                   {"snapshot_version", fetched.snapshot_version()},
                   {"items", std::move(items)}});
}

int RunFetch(const FetchFlags& flags) {
  const bool json = flags.item.client.json;
  const Connection connection = Connect(flags.item.client, kItemTimeoutSeconds);
  const auto collection = ChooseCollection(connection, flags.item.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  auto request = ItemRequest<v1::FetchRequest>(flags.item, *collection);
  if (!request.ok()) return Fail(request.status(), json);
  for (const std::string& id : flags.ids) request->add_ids(id);
  request->set_with_vectors(flags.with_vectors);
  const absl::StatusOr<v1::FetchResponse> fetched = connection.Fetch(*request);
  if (!fetched.ok()) return Fail(fetched.status(), json);
  if (json) {
    fmt::print("{}", FetchedJson(collection->name(), *fetched));
    return kSucceeded;
  }
  for (const v1::Item& item : fetched->items()) {
    fmt::print("{}", ItemDetails(item, StandardOutput()));
  }
  SuggestNext("simile similar --id " + flags.ids.front());
  return kSucceeded;
}

}  // namespace

void AddFetchCommand(CommandLine& line) {
  auto flags = std::make_shared<FetchFlags>();
  Command command = line.Add("fetch", "Show items by their ids");
  command.Texts("--id", flags->ids, "ID", "Show this item; several ids may follow")
      .Required()
      .Switch("--with-vectors", flags->with_vectors, "Return each item's stored vector");
  AddItemFlags(command, flags->item);
  command.Footer("simile fetch --id toy-story-1995 heat-1995").Run([flags] {
    return RunFetch(*flags);
  });
}

}  // namespace simile::cli
