#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/client_flags.h"
#include "cli/collection_flags.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/item_text.h"
#include "cli/output_text.h"
#include "cli/wire_names.h"

namespace simile::cli {
namespace {

struct LookupFlags {
  ItemFlags item;
  std::optional<std::string> text;
  std::optional<std::string> field;
  std::optional<std::uint32_t> limit;
};

std::string FoundJson(const std::string& collection, const v1::LookupResponse& found) {
  nlohmann::ordered_json matches = nlohmann::ordered_json::array();
  for (const v1::LookupMatch& match : found.matches()) {
    nlohmann::ordered_json json = {{"match", QualityName(match.quality())}};
    json.update(ItemJson(match.item()));
    matches.push_back(std::move(json));
  }
  nlohmann::ordered_json json = {{"collection", collection},
                                 {"snapshot_id", found.snapshot_id()},
                                 {"snapshot_version", found.snapshot_version()},
                                 {"match_count", found.match_count()},
                                 {"whole_match_count", found.whole_match_count()},
                                 {"matches", std::move(matches)}};
  AddNotes(found.notes(), json);
  if (!found.nearest().empty()) json["nearest"] = found.nearest();
  return JsonLine(json);
}

// `16 items of films match "batman", 3 exactly`
std::string CountText(const std::string& collection, const LookupFlags& flags,
                      const v1::LookupResponse& found) {
  std::string text = fmt::format("{} \"{}\"", MatchCountText(found.match_count(), collection),
                                 Printable(*flags.text));
  if (found.whole_match_count() > 0) {
    text += fmt::format(", {} exactly", base::Grouped(found.whole_match_count()));
  }
  return text;
}

void PrintFound(const std::string& collection, const LookupFlags& flags,
                const v1::LookupResponse& found) {
  const auto listed = static_cast<std::uint64_t>(found.matches_size());
  fmt::print("{}{}\n{}", CountText(collection, flags, found), listed == 0 ? "" : ":",
             MatchTable(found, flags.item.fields, StandardOutput()));
  if (found.match_count() > listed) {
    fmt::print("  and {} more; --limit shows more\n", base::Grouped(found.match_count() - listed));
  }
  fmt::print("{}", NotesText(found.notes(), "lookup"));
  if (!found.nearest().empty()) {
    fmt::print("did you mean {}?\n", Printable(base::Quoted(found.nearest())));
  }
  if (listed == 0) return;
  SuggestNext(NextCommand(fmt::format("similar {}", ListFlag("--id", found.matches(0).item().id())),
                          flags.item.client, flags.item.collection));
}

int RunLookup(const LookupFlags& flags) {
  const bool json = flags.item.client.json;
  const Connection connection = Connect(flags.item.client, kItemTimeoutSeconds);
  const auto collection = ChooseCollection(connection, flags.item.collection);
  if (!collection.ok()) return Fail(collection.status(), json);
  auto request = ItemRequest<v1::LookupRequest>(flags.item, *collection);
  if (!request.ok()) return Fail(request.status(), json);
  request->set_text(*flags.text);
  request->set_field(flags.field.value_or(""));
  if (flags.limit) request->set_limit(*flags.limit);
  const absl::StatusOr<v1::LookupResponse> found = connection.Lookup(*request);
  if (!found.ok()) return Fail(found.status(), json);
  if (json) {
    fmt::print("{}", FoundJson(collection->name(), *found));
  } else {
    PrintFound(collection->name(), flags, *found);
  }
  return kSucceeded;
}

}  // namespace

void AddLookupCommand(CommandLine& line) {
  auto flags = std::make_shared<LookupFlags>();
  Command command = line.Add("lookup", "Find items by a title or a part of it");
  command.Positional("TEXT", flags->text, "The text, whatever its case and accents")
      .Required()
      .Text("--field", flags->field, "FIELD",
            "The field to search (default: all look-up fields of the collection)")
      .Number("--limit", flags->limit, "COUNT", "Items to show (default 20)", 1);
  AddItemFlags(command, flags->item, kTableFieldsHelp);
  command
      .Footer(
          "simile lookup batman --limit 5\n"
          "Items whose whole text it is come first, then those that begin with it.\n"
          "`simile list NAME` says which fields can be searched.")
      .Run([flags] { return RunLookup(*flags); });
}

}  // namespace simile::cli
