#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/payload_text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// What tables show of an item, whichever answer it comes from. Points into that answer.
struct ItemView {
  const std::string* id;
  const PayloadMap* payload;
  std::optional<std::uint64_t> row;  // where the answer has it
};

//   item  a v1::Hit or v1::Item
template <class Item>
ItemView MakeItemView(const Item& item) {
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

// `16 items of films match`, `1 item of films matches`, `no item of films matches`
std::string MatchCountText(std::uint64_t count, const std::string& collection);

// The fields that a look-up searches, as in `no title or cast contains it`; "title" for none.
std::string LookupFieldsText(const v1::Collection& collection);

// One item with all it has, one field per line, under its id. A field that only repeats the id is
// left out.
std::string ItemDetails(const v1::Item& item, const Terminal& terminal);

// The items that a text was found in, one per line, best first, in the columns of
// ChooseItemColumns.
std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal);

// {"id", "row", "payload", "vector"}; row and vector only where the answer has them. {"id",
// "error"} for an id that a partial answer has no row for, with the error of errors.h.
nlohmann::ordered_json ItemJson(const v1::Item& item);

// Adds "notes" where there are some.
void AddNotes(const google::protobuf::RepeatedPtrField<std::string>& notes,
              nlohmann::ordered_json& json);
// One line for each: `note: --with-rows has no effect: ...`.
std::string NotesText(const google::protobuf::RepeatedPtrField<std::string>& notes,
                      std::string_view command);

}  // namespace simile::cli
