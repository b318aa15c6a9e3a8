#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One line per collection: name, state, shape, metric, users, host memory, GPU memory (where any
// collection has some), snapshot, backend and its reason.
std::string CollectionTable(const std::vector<v1::Collection>& collections,
                            const Terminal& terminal);

// One line per purpose of GPU memory, with its bytes now and at peak; empty without a GPU.
std::string DeviceMemoryTable(const v1::Backend& backend, const Terminal& terminal);

// Everything about one collection: shape, memory, snapshot, backend, fields and notes.
std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal);

// `films: 5,000 rows x 384 (cosine), 500 users, 9.5 MiB, snapshot 1`
std::string CollectionLine(const v1::Collection& collection);

// One collection as a JSON object on one line, ended by '\n': the fields of simile.v1.Collection
// under their names, states and metrics in lower case, loaded_at in RFC 3339.
std::string CollectionJson(const v1::Collection& collection);

// {"collections": [...], "backend": {...}}, likewise.
std::string CollectionsJson(const v1::ListCollectionsResponse& listed);

}  // namespace simile::cli
