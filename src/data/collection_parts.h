#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/folder_fingerprint.h"
#include "data/plan.h"

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
  std::span<const std::string_view> others;  // what people also call it, without an ending
  std::string_view is_read;                  // "payload is read"
  std::string_view ending;                   // of a file that can be read; empty: those of vectors
  std::string_view content;                  // ", one JSON object a line"
};

// All but collection.json, in the order of their roles.
std::span<const CollectionPart> CollectionParts();

// REQUIRES: not FileRole::kSettings.
const CollectionPart& PartOf(FileRole role);

// A role as collection.json and listings name it: "user_vectors", "settings".
std::string_view NameOf(FileRole role);

// The usual names with their endings: those of vectors once for each format of vectors.
std::vector<std::string> UsualNames(const CollectionPart& part);

// Whether a file of this name can be the part's.
bool HasEndingOf(const CollectionPart& part, std::string_view name);

}  // namespace simile::data
