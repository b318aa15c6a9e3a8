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

// One line per field: name, type, rows, distinct values, the most common ones or the range, memory.
std::string FieldsTable(const v1::DescribeFieldsResponse& described, const Terminal& terminal);

// Of one field: type, rows and distinct values, then a line for each value; of a range one line.
std::string FieldValuesTable(const v1::FieldDescription& field, const Terminal& terminal);

// A filter that many rows pass, as a flag in a shell: `--filter 'genres:"Drama"'`; empty when no
// field has common values that need no escapes.
std::string FilterExample(const v1::DescribeFieldsResponse& described);

// {"collection", "rows", "snapshot_id", "snapshot_version", "fields": [{"name", "type", "rows",
// "distinct_values", "values": [{"value", "rows"}], "least", "greatest", "bytes"}]} on one line,
// ended by '\n'. Integers and numbers are JSON numbers; times are RFC 3339 texts.
std::string FieldsJson(const std::string& collection, const v1::DescribeFieldsResponse& described);

}  // namespace simile::cli
