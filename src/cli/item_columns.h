#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/payload_text.h"
#include "cli/table.h"

namespace simile::cli {

// What tables show of an item, whichever answer it comes from. Points into that answer.
struct ItemView {
  const std::string* id;
  const PayloadMap* payload;
  std::optional<std::uint64_t> row;  // where the answer has it
};

//   item  a v1::Hit or v1::Item
template <class Item>
ItemView ViewOf(const Item& item) {
  return {&item.id(), &item.payload(),
          item.has_row() ? std::optional<std::uint64_t>(item.row()) : std::nullopt};
}

// The columns that describe an item: its id, its row where the answer has it, and payload fields.
struct ItemColumns {
  bool with_rows = false;
  bool with_headings = false;  // not needed for id, title, year and genres
  std::vector<std::string> fields;
};

// Whether the field only says the ids again: tables leave it out. Of a single item, a number that
// equals the id is not enough. A field called `id` that no payload has is one that was asked for.
bool RepeatsIds(const std::vector<ItemView>& items, const std::string& field);

// Chooses the columns for all items of an answer.
//   fields  of --fields; empty: those of TableFields. A field that only repeats the ids is left
//   out.
ItemColumns ChooseItemColumns(const std::vector<ItemView>& items,
                              const std::vector<std::string>& fields);

void AddItemColumns(const ItemColumns& columns, std::vector<Table::Column>& layout);
void AddItemCells(const ItemColumns& columns, const ItemView& item,
                  std::vector<std::string>& cells);

}  // namespace simile::cli
