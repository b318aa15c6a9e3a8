#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/vector_layout.h"
#include "data/load/fingerprint.h"
#include "data/load/folder_files.h"
#include "data/payload/field_rules.h"
#include "simile/limits.h"
#include "simile/query.h"

namespace simile::data {

// The files of a collection's folder and its settings. File names are relative to the folder, and
// are the display names that errors and notes begin with; empty when the file is absent.
struct CollectionFiles {
  std::filesystem::path folder;
  std::filesystem::path links_within;  // Folder::Open's
  std::string settings;                // collection.json
  std::string vectors;                 // required: content_vectors.npy, vectors.npy or .safetensors
  std::string payload;                 // metadata.jsonl
  std::string user_ids;                // user_ids.json
  std::string user_vectors;            // preference_vectors.npy or .safetensors
  std::string interactions;            // interactions.jsonl
  Metric metric = Metric::kCosine;
  OnZeroRow on_zero_row = OnZeroRow::kRefuse;
  std::string id_field;                    // empty: FindIdField chooses it
  std::string tensor;                      // empty: the file's only tensor
  std::vector<std::string> lookup_fields;  // empty: `title`, else `name`, when the payload has them
  std::vector<NamedFieldType> field_types;  // of other fields FieldRules decides
  std::vector<NamedSeparator> separators;

  friend bool operator==(const CollectionFiles&, const CollectionFiles&) = default;
};

// The file of a role; empty when it is absent.
const std::string& FileOf(const CollectionFiles& files, FileRole role);

// What a load would read, from the files' headers and sizes alone; nothing large is read.
struct DatasetPlan {
  CollectionFiles files;
  FolderFingerprint fingerprint;  // of these files, taken before their headers were read
  FolderListing listing;          // of all files of the folder
  std::uint64_t row_count = 0;
  std::uint32_t dim = 0;
  std::uint64_t user_count = 0;    // 0 without users
  std::uint64_t vector_bytes = 0;  // Dataset::vectors
  // The types of the generation that this load replaces. Publisher sets them; empty for a first
  // load.
  KeptTypes kept_types;

  FieldRules field_rules() const { return {files.field_types, files.separators, kept_types}; }
};

// Finds the files of the folder (and its media/ and users/), reads collection.json and the headers.
// engine/snapshots/memory_plan.h says what a load would take.
//   links_within  Folder::Open's
// Errors: INVALID_FILES when the folder or its vectors are missing (naming what was looked for) or
//         collection.json or a header is malformed: file, place, what would be right. Only regular
//         files are opened; links that lead too far are refused.
absl::StatusOr<DatasetPlan> PlanDataset(const std::filesystem::path& folder, const Limits& limits,
                                        const std::filesystem::path& links_within = {});

}  // namespace simile::data
