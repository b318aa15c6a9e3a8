#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One line a collection: name, state, shape, metric, users, memory, snapshot, backend and why.
std::string CollectionTable(const std::vector<v1::Collection>& collections,
                            const Terminal& terminal);

// Everything about one collection: what it holds, what that takes, its fields and notes.
std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal);

// `films: 5,000 rows x 384 (cosine), 500 users, 9.5 MiB, snapshot 1`
std::string CollectionLine(const v1::Collection& collection);

}  // namespace simile::cli
