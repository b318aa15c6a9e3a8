#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

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
