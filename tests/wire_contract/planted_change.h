#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "wire_contract/contract.h"
#include "wire_contract/finding.h"

namespace simile::wire_contract {

// Files of the small contracts in which changes are planted.
inline constexpr char kTypes[] = "music/v1/types.proto";
inline constexpr char kPlayer[] = "music/v1/player.proto";

// One replacement in a file of a small contract.
struct Edit {
  std::string file;
  std::string before;  // found once; empty replaces the whole file
  std::string after;
};

// Changes that some rules find, and no others.
struct PlantedChange {
  std::string name;
  std::vector<Edit> edits;
  std::set<std::string> rules;
};

inline std::ostream& operator<<(std::ostream& out, const PlantedChange& change) {
  return out << change.name;
}

// Fails the test when an edit does not apply.
ProtoSources Edited(ProtoSources sources, const std::vector<Edit>& edits);

std::set<std::string> RulesOf(const Findings& findings);

}  // namespace simile::wire_contract
