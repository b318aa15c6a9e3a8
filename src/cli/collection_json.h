#pragma once

#include <string>

#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One collection as a JSON object on one line, ended by '\n': the fields of simile.v1.Collection
// under their names, states and metrics in lower case, loaded_at in RFC 3339.
std::string CollectionJson(const v1::Collection& collection);

// {"collections": [...], "backend": {...}}, likewise.
std::string CollectionsJson(const v1::ListCollectionsResponse& listed);

}  // namespace simile::cli
