#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/client_flags.h"
#include "cli/collection_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/item_text.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

struct FetchFlags {
  ItemFlags item;
  std::vector<std::string> ids;
  bool with_vectors = false;
  bool partial = false;
};

std::string FetchedJson(const std::string& collection, const v1::FetchResponse& fetched) {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  for (const v1::Item& item : fetched.items()) items.push_back(ItemJson(item));
  nlohmann::ordered_json json = {{"collection", collection},
                                 {"snapshot_id", fetched.snapshot_id()},
                                 {"snapshot_version", fetched.snapshot_version()},
                                 {"items", std::move(items)}};
  if (fetched.failed_count() > 0) json["failed_count"] = fetched.failed_count();
  AddNotes(fetched.notes(), json);
  return JsonLine(json);
}

// The first item that was found, to be named in the suggested command; null if none was.
const v1::Item* FirstItem(const v1::FetchResponse& fetched) {
  const auto found =
      std::ranges::find_if(fetched.items(), [](const v1::Item& item) { return !item.has_error(); });
  return found == fetched.items().end() ? nullptr : &*found;
}

// Adds how to find ids to the error of an unknown id, unless the error offers a similar id.
absl::Status WithWayToIds(const absl::Status& error, const v1::Collection& collection) {
  const bool offers_one = error.message().find("Did you mean") != std::string_view::npos;
  if (!absl::IsNotFound(error) || offers_one || collection.lookup_fields().empty()) return error;
  return WithAdvice(error, fmt::format("`simile lookup TEXT` finds an item by its {}.",
                                       LookupFieldsText(collection)));
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
  request->set_partial(flags.partial);
  const absl::StatusOr<v1::FetchResponse> fetched = connection.Fetch(*request);
  if (!fetched.ok()) return Fail(WithWayToIds(fetched.status(), *collection), json);
  const v1::Item* const first = FirstItem(*fetched);
  if (json) {
    fmt::print("{}", FetchedJson(collection->name(), *fetched));
    return first == nullptr ? kFailed : kSucceeded;
  }
  for (const v1::Item& item : fetched->items()) {
    fmt::print("{}", ItemDetails(item, StandardOutput()));
  }
  fmt::print("{}", NotesText(fetched->notes(), "fetch"));
  if (first == nullptr) return kFailed;
  SuggestNext(NextCommand(fmt::format("similar {}", ListFlag("--id", first->id())),
                          flags.item.client, flags.item.collection));
  return kSucceeded;
}

}  // namespace

void AddFetchCommand(CommandLine& line) {
  auto flags = std::make_shared<FetchFlags>();
  Command command = line.Add("fetch", "Show items by their ids");
  command.List("--id", flags->ids, "ID", "The items to show")
      .Required()
      .Switch("--with-vectors", flags->with_vectors, "Return each item's stored vector")
      .Switch("--partial", flags->partial,
              "Show the items that there are, and say of each other id what is wrong with it");
  AddItemFlags(command, flags->item, kFieldsHelp);
  command.Footer("simile fetch --id toy-story-1995,heat-1995").Run([flags] {
    return RunFetch(*flags);
  });
}

}  // namespace simile::cli
