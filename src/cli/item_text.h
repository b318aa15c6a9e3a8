#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// `16 items of films match`, `1 item of films matches`, `no item of films matches`
std::string MatchCountText(std::uint64_t count, const std::string& collection);

// One item with all it has, one field per line, under its id. A field that only repeats the id is
// left out.
std::string ItemDetails(const v1::Item& item, const Terminal& terminal);

// The items that a text was found in, one per line, best first, in the columns of
// ChooseItemColumns.
std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal);

// {"id", "row", "payload", "vector"}; row and vector only where the answer has them.
nlohmann::ordered_json ItemJson(const v1::Item& item);

}  // namespace simile::cli
