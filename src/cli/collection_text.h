#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

// One line per collection: name, state, shape, metric, users, host memory, snapshot, backend. GPU
// memory and folder have columns if any collection has a value. The last line says the server's
// backend and why it was chosen. A collection gives a reason only if it differs from the server's.
std::string CollectionTable(const v1::ListCollectionsResponse& listed, const Terminal& terminal);

// Everything about one collection: shape, memory, folder, snapshot, backend, fields, notes, and the
// folder's files. Each file has the role it was read as, or why it was not read.
std::string CollectionDetails(const v1::Collection& collection, const Terminal& terminal);

// `0.5 % of sampled answers are those of the snapshot before`.
// REQUIRES: the collection has an overlap.
std::string OverlapText(const v1::Collection& collection);

// `films: 5,000 rows x 384 (cosine), 500 users, 9.5 MiB, snapshot 1 (3f9a12c4)`
std::string CollectionLine(const v1::Collection& collection);
// The notes of the collection's load, after a blank line; empty without notes. Leaves out notes
// that a file was not read, because CollectionDetails shows them beside the file.
std::string NotesText(const v1::Collection& collection);

// One collection as a JSON object: the fields of simile.v1.Collection under their names, enums as
// lower-case words, loaded_at in RFC 3339. progress is null while nothing loads. A file has a role
// if it was read, otherwise a reason; the other one is null. `bytes` also has `host`, the sum of
// all but `device`.
nlohmann::ordered_json CollectionJson(const v1::Collection& collection);

// {"collections": [...], "backend": {...}} on one line, ended by '\n'.
std::string CollectionsJson(const v1::ListCollectionsResponse& listed);

// One line per field: name, type, rows, distinct values, the most common ones or the range, memory.
std::string FieldsTable(const v1::DescribeFieldsResponse& described, const Terminal& terminal);

// One field: type, rows and distinct values, then one line per value, or one line for a range.
std::string FieldValuesTable(const v1::FieldDescription& field, const Terminal& terminal);

// A filter that many rows pass, such as `genres:"Drama"`. Empty if no field has a common value that
// needs no escapes.
std::string FilterExample(const v1::DescribeFieldsResponse& described);

// {"collection", "rows", "snapshot_id", "snapshot_version", "fields": [{"name", "type", "rows",
// "distinct_values", "values": [{"value", "rows"}], "least", "greatest", "bytes"}]} on one line,
// ended by '\n'. Integers and numbers are JSON numbers; times are RFC 3339 texts.
std::string FieldsJson(const std::string& collection, const v1::DescribeFieldsResponse& described);

}  // namespace simile::cli
