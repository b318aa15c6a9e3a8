#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/status.h>

#include "base/long_work.h"

namespace simile::base {

// Measures how far apart two names are: how many single-byte insertions, deletions, replacements
// and swaps of neighbours turn one into the other. Ignores ASCII case. (Optimal string alignment.)
// Keeps its table between calls, so that a search of a long list does not allocate for each name.
class NameDistance {
 public:
  // Returns most + 1, early, for any distance above `most`. Cost: O(most * length).
  std::size_t Between(std::string_view left, std::string_view right, std::size_t most);

 private:
  // The last three rows of the distance table.
  std::vector<std::size_t> before_last_;
  std::vector<std::size_t> last_;
  std::vector<std::size_t> now_;
};

// Finds the name that a mistyped one was probably meant to be. A number with more or fewer leading
// zeros ("000677" for "677") comes first. The name at the smallest distance is next, if the
// distance is at most a third of the longer name. Where no name is that near, it is the shortest
// name that begins with the mistyped name ("toy-story-1995" for "toy-story"), if that has three
// characters or more. The first considered wins a tie. Borrows the names until the search is over.
class NearestSearch {
 public:
  explicit NearestSearch(std::string_view wanted);

  // Cost: O(length * length / 3) at most.
  void Consider(std::string_view name);
  // The same for one text of a long list. Skips the text when it, or the mistyped name, has more
  // than kTextBytesMax bytes.
  // Errors: those of `work`, before the text is compared.
  absl::Status ConsiderText(std::string_view text, LongWork& work);
  static constexpr std::size_t kTextBytesMax = 128;
  // Looks for numbers and continuations alone, for lists that are too long to measure distances.
  // Cost: O(length of the name).
  void ConsiderContinuation(std::string_view name);
  // Empty when no name came near.
  std::string_view found() const;

 private:
  std::string_view wanted_;
  std::string_view number_;  // wanted_ without leading zeros; empty when it is no whole number
  bool long_enough_to_continue_;
  NameDistance distances_;
  std::optional<std::string_view> same_number_;
  std::optional<std::string_view> near_;
  std::size_t near_distance_ = 0;
  std::optional<std::string_view> continuation_;
};

// What NearestSearch finds in a list; empty when no name is near.
std::string NearestName(std::string_view wanted, std::span<const std::string> known);

// The sentence that offers a name, to append to another: ` Did you mean "x"?`. Empty for no name.
std::string DidYouMean(std::string_view nearest);

}  // namespace simile::base
