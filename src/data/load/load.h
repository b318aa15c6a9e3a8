#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/vector_reader.h"
#include "data/load/dataset.h"
#include "data/load/plan.h"
#include "data/payload/payload_table.h"
#include "simile/limits.h"

namespace simile::data {

// How far the files of a load are read.
struct ReadProgress {
  std::string_view file;  // the display name of the file being read; empty when all are read
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  // of all files
};
// Called from the loading thread after each read, and once when everything is loaded.
using ProgressFn = std::function<void(const ReadProgress& progress)>;

// Reads and checks everything. Files are read once, in order, through a small buffer, so the peak
// is the dataset plus a few MiB.
// Errors: as PlanDataset; DOES_NOT_FIT without memory; FILES_CHANGED when a file was changed, added
//         or removed since the plan. Every message begins with the file's display name and says row
//         or line, column or field, and what would be right.
absl::StatusOr<Dataset> LoadDataset(const DatasetPlan& plan, const Limits& limits,
                                    const ProgressFn& progress);

// The payload fields that look-ups search: those of the settings, else `title`, else `name`, when
// the payload has them.
std::vector<std::string> FindLookupFields(const CollectionFiles& files,
                                          const PayloadTable& payload);

// The types of all fields, which a load in place of the dataset keeps.
std::vector<KeptType> ListKeptTypes(const Dataset& dataset);
// The fields with values that do not fit their type: `price (integer): 1 value, the first in row
// 57`, joined by `; `. Empty for none.
std::string UnfitText(const PayloadTable& payload);

// What a load would make of a dataset.
struct DatasetSummary {
  std::string content_id;    // as Dataset's
  VectorFacts vectors;       // as stored
  VectorFacts user_vectors;  // as stored; empty without users
  std::string id_field;      // empty: ids are row numbers
  std::string first_id;
  std::string last_id;
  std::vector<FieldInfo> fields;  // of the payload
  std::vector<std::string> lookup_fields;
  std::vector<std::string> notes;
  bool interactions_all_unknown = false;  // there are lines, and none of them is used
};

// Does all that LoadDataset does, with the same errors, but keeps no vectors, payload rows or seen
// items: its memory is that of the ids.
absl::StatusOr<DatasetSummary> CheckDataset(const DatasetPlan& plan, const Limits& limits,
                                            const ProgressFn& progress);

}  // namespace simile::data
