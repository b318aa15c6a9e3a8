#pragma once

#include <string>

#include "cli/terminal.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli {

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
