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

// The parts of an item that tables show. Points into the answer that holds the item.
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

// The columns that describe an item: its id, its row if the answer has it, and payload fields.
struct ItemColumns {
  bool with_rows = false;
  // False only if the columns explain themselves: id, title, year, genres.
  bool with_headings = false;
  std::vector<std::string> fields;
};

// Whether the field only repeats the ids, so that tables leave it out. For a single item a number
// that equals the id does not count as a repetition. A field `id` that no payload has repeats the
// ids too.
bool RepeatsIds(const std::vector<ItemView>& items, const std::string& field);

// Chooses the columns for all items of an answer.
//   fields  of --fields; empty: TableFields's. Fields that only repeat the ids are left out.
ItemColumns ChooseItemColumns(const std::vector<ItemView>& items,
                              const std::vector<std::string>& fields);

void AddItemColumns(const ItemColumns& columns, std::vector<Table::Column>& layout);
void AddItemCells(const ItemColumns& columns, const ItemView& item,
                  std::vector<std::string>& cells);

// `16 items of films match`, `1 item of films matches`, `no item of films matches`
std::string MatchCountText(std::uint64_t count, const std::string& collection);

// The fields that a look-up searches, as in `title or cast`; "title" if there are none.
std::string LookupFieldsText(const v1::Collection& collection);

// One item in full: its id, then one field per line. Leaves out a field that only repeats the id.
std::string ItemDetails(const v1::Item& item, const Terminal& terminal);

// The items in which a text was found, one per line, best first, in the columns of
// ChooseItemColumns.
std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal);

// {"id", "row", "payload", "vector"}; row and vector are present only if the answer has them.
// {"id", "error"} for an unknown id of a partial answer, with the error of errors.h.
nlohmann::ordered_json ItemJson(const v1::Item& item);

// Adds "notes" if there are any.
void AddNotes(const google::protobuf::RepeatedPtrField<std::string>& notes,
              nlohmann::ordered_json& json);
// One line per note: `note: --with-rows has no effect: ...`.
std::string NotesText(const google::protobuf::RepeatedPtrField<std::string>& notes,
                      std::string_view command);

}  // namespace simile::cli
