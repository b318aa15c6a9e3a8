#pragma once

#include <string>
#include <vector>

#include "simile/v1/collections.pb.h"
#include "simile/v1/types.pb.h"

namespace simile::cli {

// The help of --fields FIELD,FIELD where whole items are printed, and where tables are.
inline constexpr const char* kFieldsHelp =
    "Payload fields to return (default: all); id is always there";
inline constexpr const char* kTableFieldsHelp =
    "Payload fields to return (default: title, year and a list; --json: all); id is always there";

// Asks for the fields of --fields, or for all without the flag. `id` may be named where the payload
// has no such field: items have their ids in every answer.
void SelectFields(const std::vector<std::string>& fields, const v1::Collection& collection,
                  v1::PayloadSelector& selector);

}  // namespace simile::cli
