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

// A filter made from a common value of a field, and its meaning: the field has the keyword, byte
// for byte, or its integer is at least `least`. The meaning uses none of the server's filter code.
struct SampledFilter {
  std::string text;
  std::string field;
  v1::FieldType type = v1::FIELD_TYPE_UNSPECIFIED;
  std::string keyword;     // unless the type is FIELD_TYPE_INTEGER
  std::int64_t least = 0;  // for FIELD_TYPE_INTEGER
};

// Makes filters from the field's common values. Empty if the field's type or name needs more than a
// simple filter.
std::vector<SampledFilter> SampleFilters(const v1::FieldDescription& described);

// The keywords of a payload value. In a field of lists, a text such as "Action|Drama" is split at
// its bars.
std::vector<std::string> ReadKeywords(v1::FieldType type, const v1::PayloadValue& value);

// Whether a row passes, by its payload alone. In a field of lists a text passes as a whole and by
// the parts between its bars, because the wire does not say whether bars separate keywords.
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
  std::string snapshot_id;      // the snapshot that the rows belong to
  std::uint64_t row_count = 0;  // of the collection
  // How many of these rows are zero vectors, which no search returns.
  std::uint64_t skipped_rows = 0;
  std::vector<SampledRow> rows;  // distinct rows, no skipped ones; every such row if has_all_rows
  bool has_all_rows = false;
  std::vector<SampledRow> users;  // users have vectors only if they come from a folder
  std::vector<std::vector<float>> query_vectors;
  // The items that each user has seen, by index in `users`; only from a folder.
  std::vector<std::vector<std::string>> seen_ids;
  std::vector<SampledFilter> filters;  // made from common values of the payload
  std::string group_field;             // a keyword field; empty for none
};

// Where the samples come from besides the server.
struct SampleSources {
  std::optional<std::string> vectors;  // a .npy or .safetensors file of query vectors
  std::optional<std::string> users;    // a JSON list of user ids
  std::optional<std::string> folder;   // the collection's own files, for rows and users
  Limits limits;                       // of these files
  std::uint64_t seed = 1;
};

// Which samples the calls of a run need. Other samples are not collected.
struct SampleNeeds {
  bool rows = false;
  bool query_vectors = false;
  bool fields = false;  // filters and the group field
};

// Collects samples of a collection. Rows come from the folder, or from the server if no folder is
// given. Query vectors come from the file, or are made from stored rows.
// From a server, takes all rows if one answer can hold them. If not, and ids are row numbers,
// fetches rows drawn uniformly. Otherwise searches for random directions to collect some thousands
// of rows. A query vector made from rows is 0.8 times one row plus 0.2 times another, at unit
// length for cosine. It lies near the data, as real queries do, without duplicating a row. Errors:
// the server's and the files'; kInvalidArgument for vectors of another dimension, or for a folder
// whose shape differs from the collection's.
absl::StatusOr<QuerySamples> CollectSamples(const Connection& connection,
                                            const v1::Collection& collection,
                                            const SampleSources& sources, const SampleNeeds& needs);

}  // namespace simile::cli::bench
