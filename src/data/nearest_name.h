#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simile::data {

// Measures how far apart two names are: how many single-byte insertions, deletions, replacements
// and swaps of neighbours turn one into the other (optimal string alignment), ASCII case ignored.
// Keeps its table between calls, so that a long list is searched without an allocation a name.
class NameDistance {
 public:
  // Anything above `most` comes back as most + 1, and is found out early. Cost: O(most * length).
  std::size_t Between(std::string_view left, std::string_view right, std::size_t most);

 private:
  // The rows of the distance table that are alive: two above, one above, and this one.
  std::vector<std::size_t> before_last_;
  std::vector<std::size_t> last_;
  std::vector<std::size_t> now_;
};

// How far apart two names may be for one to be offered instead of the other: a third of the longer.
std::size_t EditDistanceAllowed(std::string_view left, std::string_view right);

// The known name that a mistyped one was probably meant to be, for "did you mean": the smallest
// distance within what is allowed, the first in the list on a tie. Empty when none is near.
std::string NearestName(std::string_view wanted, std::span<const std::string> known);

}  // namespace simile::data
