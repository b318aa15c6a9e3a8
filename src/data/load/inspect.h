#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "data/load/folder_files.h"
#include "data/load/load.h"
#include "data/load/plan.h"
#include "data/payload/payload_table.h"
#include "simile/limits.h"
#include "simile/payload.h"

namespace simile::data {

// Something that an inspection found.
struct InspectedFact {
  std::string key;  // for programs, in snake_case: "first_id"
  PayloadValue value;
  std::string text;  // the value for people: "3,840,128"
};

// The contents of a file or a collection's folder, and whether it would load.
struct Inspection {
  std::string kind;  // "vectors", "payload", "ids", "interactions", "collection settings", ...
  std::vector<InspectedFact> facts;    // in reading order
  std::vector<FieldInfo> fields;       // of a payload
  std::optional<DatasetPlan> plan;     // of a folder, unless that is what failed
  FolderListing listing;               // of a folder; its notes are in `notes`
  std::vector<std::string> left_out;   // unread files that the owner probably meant to be read
  std::vector<std::string> notes;      // what a load would note
  std::vector<std::string> unchecked;  // with InspectOptions::quick: the parts that were not read
  // OK when it would load, as far as it was checked, else the error of a load. Facts found before
  // the error are kept.
  absl::Status status;
};

struct InspectOptions {
  // Reads headers, sizes and names alone: as much as a load reads to plan its memory.
  bool quick = false;
  ProgressFn progress;  // of a whole folder
};

// Reads and checks a whole vector, .jsonl or .json file by itself (lengths as for cosine), or a
// folder as a collection. For a folder it does all that a load does (CheckDataset), but does not
// look at the memory that a server must have. Nothing is kept but ids. Messages name the file by
// its last part.
// Errors: only when it cannot be opened, or is of a kind that Simile does not read.
absl::StatusOr<Inspection> InspectFile(const std::filesystem::path& path, const Limits& limits,
                                       const InspectOptions& options = {});

}  // namespace simile::data
