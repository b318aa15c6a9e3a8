#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/lookup.pb.h"

namespace simile::cli {

// One item with all it has, one field per line.
std::string ItemDetails(const v1::Item& item, const Terminal& terminal);

// The items that a text was found in, one per line, best first: the id, the row where the answer
// has it, and fields.
//   fields  of --fields; empty: those of TableFields
std::string MatchTable(const v1::LookupResponse& found, const std::vector<std::string>& fields,
                       const Terminal& terminal);

// {"id", "row", "payload", "vector"}; row and vector only where the answer has them.
nlohmann::ordered_json ItemJson(const v1::Item& item);

}  // namespace simile::cli
