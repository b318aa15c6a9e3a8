#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One line a collection: name, state, shape, metric, users, memory on the host and, where there is
// any, on the device, snapshot, backend and why.
std::string CollectionTable(const std::vector<v1::Collection>& collections,
                            const Terminal& terminal);

// One line for each thing that a GPU's memory is used for, now and at most so far; empty where
// there is none.
std::string DeviceMemoryTable(const v1::Backend& backend, const Terminal& terminal);

// Everything about one collection: what it holds, what that takes, its fields and notes.
std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal);

// `films: 5,000 rows x 384 (cosine), 500 users, 9.5 MiB, snapshot 1`
std::string CollectionLine(const v1::Collection& collection);

}  // namespace simile::cli
