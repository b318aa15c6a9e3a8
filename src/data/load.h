#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/dataset.h"
#include "data/field_type.h"
#include "simile/limits.h"

namespace simile::data {

// The files a collection folder was found to hold. Paths are as opened; `shown` names (relative to
// the folder) are what error messages and notes say. Empty when the file is absent.
struct CollectionFiles {
  std::filesystem::path folder;
  std::string vectors;       // required: content_vectors.npy, vectors.npy or .safetensors
  std::string payload;       // metadata.jsonl
  std::string user_ids;      // user_ids.json
  std::string user_vectors;  // preference_vectors.npy or .safetensors
  std::string interactions;  // interactions.jsonl
  Metric metric = Metric::kCosine;
  std::string id_field;                    // empty: `id`, else `media_id`, else the row number
  std::string safetensors_tensor;          // empty: the file's only tensor
  std::vector<std::string> lookup_fields;  // empty: `title`, else `name`, when the payload has them
  std::vector<NamedFieldType> field_types;  // of the others the values tell
};

// What loading will take, from the files' headers and sizes alone; nothing large is read.
struct DatasetPlan {
  CollectionFiles files;
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;
  std::uint64_t user_count = 0;     // 0 without users
  std::uint64_t vector_bytes = 0;   // resident fp32 rows
  std::uint64_t payload_bytes = 0;  // estimate from the file's size: payload, ids, look-up index
  std::uint64_t filter_bytes = 0;   // likewise: what filters need
  std::uint64_t user_bytes = 0;     // profile vectors, ids, seen sets
  std::uint64_t total_bytes() const {
    return vector_bytes + payload_bytes + filter_bytes + user_bytes;
  }
};

// Looks into the folder (and its media/ and users/), reads collection.json and the files' headers,
// and says what is there and what it would take.
// Errors: kNotFound when the folder or its vectors are missing (naming what was looked for);
//         kInvalidArgument for a collection.json or header that is not right: file, place, what
//         would be right. Only regular files inside the folder are opened; links out are refused.
absl::StatusOr<DatasetPlan> PlanDataset(const std::filesystem::path& folder, const Limits& limits);

// Called now and then during a load with the fraction done, 0..1, from the loading thread.
using ProgressFn = std::function<void(double fraction)>;

// Reads and checks everything. Files are read once, in order, through a small buffer, so the peak
// is what stays resident plus a few MiB.
// Errors: as PlanDataset, kResourceExhausted when memory cannot be had, kAborted when a file has
//         changed shape since the plan. Every message starts with the file's shown name and says
//         row or line, column or field, and what would be right.
absl::StatusOr<Dataset> LoadDataset(const DatasetPlan& plan, const Limits& limits,
                                    const ProgressFn& progress);

}  // namespace simile::data
