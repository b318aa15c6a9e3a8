#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

namespace simile::filter {

inline constexpr char kKeywordSeparator = '|';

// The parts of "A|B|C", without the white space around them; empty ones are left out.
std::vector<std::string_view> SplitKeywords(std::string_view text);

// Tells texts that are lists of keywords in one string, as exports to tables write them, from texts
// in which a bar happens to stand: in the former most parts occur more than once.
class SeparatorEvidence {
 public:
  void Add(std::string_view text);
  bool SeparatesKeywords() const;

 private:
  absl::flat_hash_map<std::string, std::uint32_t> occurrences_;  // of parts
};

}  // namespace simile::filter
