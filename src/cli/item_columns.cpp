#include "cli/item_columns.h"

#include <algorithm>
#include <set>

#include "base/message_text.h"
#include "cli/output_text.h"

namespace simile::cli {
namespace {

// The fields that hold the ids unless collection.json names another.
bool IsUsualIdField(const std::string& field) {
  return field == kIdField || field == "media_id" || field == "item_id";
}

bool IsListOfTexts(const v1::PayloadValue& value) {
  if (!value.has_list_value() || value.list_value().values().empty()) return false;
  return value.list_value().values(0).has_string_value();
}

// Whether its values explain themselves, without a heading.
bool IsKnownField(const std::string& field) {
  return field == "title" || field == "year" || field == "genres";
}

// Takes away the fields whose cells are too wide for a column that nobody asked for, but for those
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

}  // namespace simile::cli
