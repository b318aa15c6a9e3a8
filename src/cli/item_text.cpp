#include "cli/item_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/message_text.h"
#include "cli/errors.h"
#include "cli/flag_names.h"
#include "cli/output_text.h"
#include "cli/payload_text.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

// Whether the field holds the ids if collection.json names no other field.
bool IsUsualIdField(const std::string& field) {
  return field == kIdField || field == "media_id" || field == "item_id";
}

bool IsListOfTexts(const v1::PayloadValue& value) {
  if (!value.has_list_value() || value.list_value().values().empty()) return false;
  return value.list_value().values(0).has_string_value();
}

// Whether the field's values need no heading.
bool IsKnownField(const std::string& field) {
  return field == "title" || field == "year" || field == "genres";
}

// Removes fields with cells too wide for a column that --fields did not ask for. Keeps the fields
// that name an item.
void EraseLong(const std::vector<ItemView>& items, std::set<std::string>& present) {
  constexpr std::size_t kWidthMax = 80;
  std::erase_if(present, [&](const std::string& field) {
    if (field == "title" || field == "name") return false;
    return std::ranges::any_of(items, [&](const ItemView& item) {
      return DisplayWidth(CellText(*item.payload, field)) > kWidthMax;
    });
  });
}

using Json = nlohmann::ordered_json;

// How many numbers of a vector are printed; --json prints all.
constexpr int kVectorNumbersShown = 4;

std::string VectorText(const v1::FloatVector& vector) {
  const int count = vector.values_size();
  std::string text;
  for (int i = 0; i < std::min(count, kVectorNumbersShown); ++i) {
    text += fmt::format("{}{:.4f}", i == 0 ? "" : ", ", vector.values(i));
  }
  if (count <= kVectorNumbersShown) return text;
  return fmt::format("{}, ... ({} numbers; --json prints all)", text,
                     base::Grouped(static_cast<std::uint64_t>(count)));
}

}  // namespace

bool RepeatsIds(const std::vector<ItemView>& items, const std::string& field) {
  return std::ranges::all_of(items, [&](const ItemView& item) {
    const auto found = item.payload->find(field);
    if (found == item.payload->end()) return field == kIdField;
    if (ValueText(found->second) != *item.id) return false;
    return items.size() > 1 || found->second.has_string_value() || IsUsualIdField(field);
  });
}

ItemColumns ChooseItemColumns(const std::vector<ItemView>& items,
                              const std::vector<std::string>& fields) {
  ItemColumns columns;
  std::set<std::string> present;
  std::set<std::string> lists;
  for (const ItemView& item : items) {
    for (const auto& [field, value] : *item.payload) {
      present.insert(field);
      if (IsListOfTexts(value)) lists.insert(field);
    }
    if (item.row) columns.with_rows = true;
  }
  if (fields.empty()) EraseLong(items, present);
  const auto repeats_ids = [&](const std::string& field) { return RepeatsIds(items, field); };
  std::erase_if(present, repeats_ids);
  columns.fields = fields.empty() ? TableFields(present, lists) : fields;
  std::erase_if(columns.fields, repeats_ids);
  const bool self_explaining = fields.empty() && (present.contains("title") || present.empty()) &&
                               std::ranges::all_of(columns.fields, IsKnownField);
  columns.with_headings = columns.with_rows || !self_explaining;
  return columns;
}

void AddItemColumns(const ItemColumns& columns, std::vector<Table::Column>& layout) {
  const auto heading = [&](const std::string& text) { return columns.with_headings ? text : ""; };
  layout.push_back({heading("id"), Align::kLeft, true, true});
  if (columns.with_rows) layout.push_back({heading("row"), Align::kRight});
  for (const std::string& field : columns.fields) {
    layout.push_back({heading(field), Align::kLeft, field != "year"});
  }
}

void AddItemCells(const ItemColumns& columns, const ItemView& item,
                  std::vector<std::string>& cells) {
  cells.push_back(*item.id);
  if (columns.with_rows) cells.push_back(item.row ? base::Grouped(*item.row) : "");
  for (const std::string& field : columns.fields) cells.push_back(CellText(*item.payload, field));
}

std::string MatchCountText(std::uint64_t count, const std::string& collection) {
  const std::string items = count == 0 ? "no item" : base::Counted(count, "item");
  return fmt::format("{} of {} {}", items, Printable(collection), count > 1 ? "match" : "matches");
}

std::string LookupFieldsText(const v1::Collection& collection) {
  const auto& fields = collection.lookup_fields();
  return fields.empty() ? "title" : fmt::format("{}", fmt::join(fields, " or "));
}

std::string ItemDetails(const v1::Item& item, const Terminal& terminal) {
  Table facts({{}, {"", Align::kLeft, true}});
  if (item.has_row()) facts.AddRow({"(row)", base::Grouped(item.row())});
  const std::map<std::string, v1::PayloadValue> payload(item.payload().begin(),
                                                        item.payload().end());
  for (const auto& [field, value] : payload) {
    if (!RepeatsIds({MakeItemView(item)}, field)) facts.AddRow({field, ValueText(value)});
  }
  if (item.has_error()) facts.AddRow({"error:", ErrorText(ToCallStatus(item.error()))});
  if (item.has_vector()) facts.AddRow({"(vector)", VectorText(item.vector())});
  return Bold(Printable(item.id()), terminal) + '\n' + facts.Render(terminal, 2);
}

std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal) {
  std::vector<ItemView> items;
  for (const v1::LookupMatch& match : found.matches()) items.push_back(MakeItemView(match.item()));
  const ItemColumns columns = ChooseItemColumns(items, fields);
  std::vector<Table::Column> layout;
  AddItemColumns(columns, layout);
  Table table(std::move(layout));
  for (const ItemView& item : items) {
    std::vector<std::string> cells;
    AddItemCells(columns, item, cells);
    table.AddRow(std::move(cells));
  }
  return table.empty() ? "" : table.Render(terminal, 2);
}

Json ItemJson(const v1::Item& item) {
  Json json = {{"id", item.id()}};
  if (item.has_error()) {
    json["error"] = ErrorObject(ToCallStatus(item.error()));
    return json;
  }
  if (item.has_row()) json["row"] = item.row();
  json["payload"] = PayloadJson(item.payload());
  if (!item.has_vector()) return json;
  Json numbers = Json::array();
  for (const float number : item.vector().values()) numbers.push_back(FloatJson(number));
  json["vector"] = std::move(numbers);
  return json;
}

void AddNotes(const google::protobuf::RepeatedPtrField<std::string>& notes, Json& json) {
  if (!notes.empty()) json["notes"] = std::vector<std::string>(notes.begin(), notes.end());
}

std::string NotesText(const google::protobuf::RepeatedPtrField<std::string>& notes,
                      std::string_view command) {
  std::string text;
  for (const std::string& note : notes) {
    text += fmt::format("note: {}\n", Printable(NoteInFlags(note, command)));
  }
  return text;
}

}  // namespace simile::cli
