#pragma once

#include <string>
#include <vector>

#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One collection as a JSON object on one line, ended by '\n': the fields of simile.v1.Collection
// under their names, states and metrics in lower case, loaded_at in RFC 3339.
std::string CollectionJson(const v1::Collection& collection);

// {"collections": [...]}, likewise.
std::string CollectionsJson(const std::vector<v1::Collection>& collections);

}  // namespace simile::cli
