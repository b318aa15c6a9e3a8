#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/inspect/folder_content.h"

namespace simile::cli {

enum class Fate : std::uint8_t { kRefused, kLoads, kEither };

// One way to change the folder of thing_folder.h.
struct Mutation {
  std::string name;  // distinct in its list
  std::function<void(FolderContent& folder)> apply;
  std::string says;  // part of the message of the refusal; may be empty
  Fate fate = Fate::kRefused;
};

// Mutations of one file each: wrong headers, numbers and sizes of vectors; ...
std::vector<Mutation> VectorMutations();
// ... wrong lines of metadata.jsonl and interactions.jsonl; ...
std::vector<Mutation> LineMutations();
// ... wrong values and texts of user_ids.json and collection.json; ...
std::vector<Mutation> UserIdMutations();
std::vector<Mutation> SettingsMutations();
// ... and every kind of file cut, and with bits flipped, at places drawn by the seed.
std::vector<Mutation> DrawnMutations(std::uint64_t seed);

// Mutations of the folder: files absent, doubled, exchanged, of another collection, no files at
// all.
std::vector<Mutation> FolderMutations();
// Two or three of the mutations above at once, drawn by the seed.
std::vector<Mutation> CombinedMutations(std::uint64_t seed);

}  // namespace simile::cli
