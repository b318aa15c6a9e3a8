#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace simile::integration {

// Two texts that differ in their bytes, and that a reader, a keyboard or a folding may take for
// one.
struct NearTexts {
  std::string kind;  // "marks, Thai"
  std::string a;
  std::string b;
};

// Case, width, marks of 14 scripts, NFC and NFD, white space, invisible characters, bars, prefixes,
// numbers as text, punctuation and look-alikes. The same for the same seed.
std::vector<NearTexts> DrawNearTexts(std::size_t count, std::uint64_t seed);

}  // namespace simile::integration
