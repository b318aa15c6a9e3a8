#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One line per collection: name, state, shape, metric, users, host memory, GPU memory and folder
// (where any collection has some), snapshot, backend. The last line is the server's backend and why
// it was chosen; a collection says so only where it differs.
std::string CollectionTable(const v1::ListCollectionsResponse& listed, const Terminal& terminal);

// Everything about one collection: shape, memory, folder, snapshot, backend, fields, the folder's
// files with what each was read as, or why it was not, and notes.
std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal);

// `0.5 % of sampled answers are those of the snapshot before`.
// REQUIRES: the collection has an overlap.
std::string OverlapText(const v1::Collection& collection);

// `films: 5,000 rows x 384 (cosine), 500 users, 9.5 MiB, snapshot 1 (3f9a12c4)`
std::string CollectionLine(const v1::Collection& collection);
// The notes of the collection's load, a blank line before them. Notes that a file was not read are
// left out: CollectionDetails shows these beside the file. Empty without notes.
std::string NotesText(const v1::Collection& collection);

// One collection as a JSON object: the fields of simile.v1.Collection under their names, enums as
// words in lower case, loaded_at in RFC 3339; progress is null while nothing loads, the role of a
// file that was not read and the reason for one that was likewise. `bytes` also has `host`: all but
// `device`.
nlohmann::ordered_json CollectionJson(const v1::Collection& collection);

// {"collections": [...], "backend": {...}} on one line, ended by '\n'.
std::string CollectionsJson(const v1::ListCollectionsResponse& listed);

}  // namespace simile::cli
