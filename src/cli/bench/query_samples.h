#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/connection.h"
#include "cli/payload_text.h"
#include "simile/limits.h"
#include "simile/query.h"
#include "simile/v1/collections.pb.h"

namespace simile::cli::bench {

// A filter made from a common value of a field, and what it means, without the server's filter
// code: a keyword that the field has, byte for byte, or an integer of at least `least`.
struct SampledFilter {
  std::string text;
  std::string field;
  v1::FieldType type = v1::FIELD_TYPE_UNSPECIFIED;
  std::string keyword;     // not of FIELD_TYPE_INTEGER
  std::int64_t least = 0;  // of FIELD_TYPE_INTEGER
};

// Filters by the field's common values: none for a type or name that has no simple ones.
std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described);

// The keywords of a payload's value: in a field of lists those between the bars of a text such as
// "Action|Drama".
std::vector<std::string> ReadKeywords(v1::FieldType type, const v1::PayloadValue& value);

// Whether a row passes, computed from its payload alone. Whether bars separate a text in a field of
// lists is not on the wire: it passes as a whole and by its parts.
bool Passes(const SampledFilter& filter, const PayloadMap& payload);

// A row of the collection as the load generator knows it.
struct SampledRow {
  std::string id;
  std::vector<float> vector;  // as stored
};

// What queries are made of.
struct QuerySamples {
  std::string collection;
  std::size_t dim = 0;
  Metric metric = Metric::kCosine;
  std::string snapshot_id;         // the content the rows are of
  std::uint64_t row_count = 0;     // of the collection
  std::uint64_t skipped_rows = 0;  // of these, rows of zeros that no search returns
  std::vector<SampledRow> rows;    // distinct, none skipped; all of those when has_all_rows
  bool has_all_rows = false;
  std::vector<SampledRow> users;  // with vectors only from a folder
  std::vector<std::vector<float>> query_vectors;
  // Items that each user has seen; only from a folder, by index in `users`.
  std::vector<std::vector<std::string>> seen_ids;
  std::vector<SampledFilter> filters;  // made from common values of the payload
  std::string group_field;             // a keyword field; empty for none
};

// Where the samples come from besides the server.
struct SampleSources {
  std::optional<std::string> vectors;  // a .npy or .safetensors file of query vectors
  std::optional<std::string> users;    // a JSON list of user ids
  std::optional<std::string> folder;   // the collection's own files: rows and users
  Limits limits;                       // of these files
  std::uint64_t seed = 1;
};

// What the calls of a run are made of; what is not needed is not collected.
struct SampleNeeds {
  bool rows = false;
  bool query_vectors = false;
  bool fields = false;  // filters and the group field
};

// Collects samples of a collection: rows from the folder when there is one, else from the server;
// query vectors from the file, else made of stored rows.
//
// Rows of a server: all of them when one answer holds them. Ids that are row numbers are drawn
// uniformly and fetched. Otherwise searches for random directions collect some thousands of rows.
// Query vectors made of rows are 0.8 times one row plus 0.2 times another, at unit length for
// cosine: near the data as real queries are, and no row's duplicate.
//
// Errors: those of the server and of the files; kInvalidArgument for vectors of another dimension,
// or a folder whose shape is not the collection's.
absl::StatusOr<QuerySamples> CollectSamples(const Connection& connection,
                                            const v1::Collection& collection,
                                            const SampleSources& sources, const SampleNeeds& needs);

}  // namespace simile::cli::bench
