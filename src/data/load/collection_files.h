#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "data/formats/buffered_reader.h"
#include "data/load/fingerprint.h"
#include "data/load/folder.h"
#include "data/load/plan.h"
#include "simile/limits.h"
#include "simile/query.h"

namespace simile::data {

inline constexpr const char* kCollectionJson = "collection.json";

// A part of a collection that a file of its own holds, and where that file is looked for: in the
// folder itself and in one subfolder.
struct CollectionPart {
  FileRole role;
  std::string_view key;  // in collection.json
  std::string CollectionFiles::*member;
  std::string_view subfolder;                // "media/"
  std::span<const std::string_view> names;   // usual ones
  std::span<const std::string_view> others;  // other names that people give it, without an ending
  std::string_view is_read;                  // "payload is read"
  std::string_view ending;   // of a file that can be read; empty: the endings of vectors
  std::string_view content;  // ", one JSON object a line"
};

// All but collection.json, in the order of their roles.
std::span<const CollectionPart> CollectionParts();

// REQUIRES: not FileRole::kSettings.
const CollectionPart& PartOf(FileRole role);

// A role as collection.json and listings name it: "user_vectors", "settings".
std::string_view NameOf(FileRole role);

// The usual names with their endings; names of vectors once for each format of vectors.
std::vector<std::string> UsualNames(const CollectionPart& part);

// Whether a file of this name can be the part's.
bool HasPartEnding(const CollectionPart& part, std::string_view name);

// Reads collection.json, the settings that file names cannot express:
//   vectors, payload, user_ids, user_vectors, interactions   files inside the folder
//   metric         "cosine" (default) or "dot"
//   on_zero_row    what a row of zeros is for cosine: "refuse" (default) or "skip"
//   id_field       the payload field that holds ids
//   tensor         which tensor of a file that names several
//   lookup_fields  the payload fields that a look-up searches, a list
//   field_types    the types of payload fields in filters, an object of type names by field
//   separators     what separates the keywords of texts, an object of texts by field:
//                  {"genres": "|"}
// Settings that it does not mention stay empty; the folder is not read.
// Errors: kInvalidArgument beginning with the file's name; an unknown key is refused with the
//         nearest known one.
absl::StatusOr<CollectionFiles> ReadCollectionJson(BufferedReader& in, const Limits& limits);

// "cosine" or "dot", as collection.json has it.
std::string_view NameOf(Metric metric);

// Finds a collection's files: the files that collection.json names, and otherwise files with usual
// names, in the folder itself or in its media/ (items) and users/ (users) subfolders. Only names
// are examined.
//   path  the folder as the caller gave it, kept in the result, whose links_within stays empty
// Errors: kNotFound when there are no vectors or a named file is missing; kInvalidArgument for a
//         malformed collection.json, two candidates for one part, or users with ids but without
//         vectors, or with vectors but without ids.
absl::StatusOr<CollectionFiles> DiscoverFiles(const Folder& folder,
                                              const std::filesystem::path& path,
                                              const Limits& limits);

}  // namespace simile::data
