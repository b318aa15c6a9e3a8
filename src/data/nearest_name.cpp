#include "data/nearest_name.h"

#include <algorithm>
#include <utility>

namespace simile::data {
namespace {

char FoldAscii(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::size_t NameDistance::Between(std::string_view left, std::string_view right, std::size_t most) {
  const std::size_t far = most + 1;
  const std::size_t length_gap =
      left.size() > right.size() ? left.size() - right.size() : right.size() - left.size();
  if (length_gap > most) return far;

  const std::size_t width = right.size() + 1;
  before_last_.assign(width, far);
  last_.assign(width, far);
  now_.assign(width, far);
  for (std::size_t j = 0; j <= std::min(right.size(), most); ++j) now_[j] = j;

  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::swap(before_last_, last_);
    std::swap(last_, now_);
    // Cells further than `most` from the diagonal are out of reach: only the band is worked out.
    const std::size_t first = i > most ? i - most : 1;
    const std::size_t end = std::min(right.size(), i + most);
    now_[first - 1] = first == 1 ? std::min(i, far) : far;
    if (end < right.size()) now_[end + 1] = far;
    std::size_t best = now_[first - 1];
    const char letter = FoldAscii(left[i - 1]);
    for (std::size_t j = first; j <= end; ++j) {
      const char other = FoldAscii(right[j - 1]);
      std::size_t cost =
          std::min({last_[j] + 1, now_[j - 1] + 1, last_[j - 1] + (letter == other ? 0U : 1U)});
      const bool swapped =
          i > 1 && j > 1 && letter == FoldAscii(right[j - 2]) && FoldAscii(left[i - 2]) == other;
      if (swapped) cost = std::min(cost, before_last_[j - 2] + 1);
      now_[j] = std::min(cost, far);
      best = std::min(best, now_[j]);
    }
    if (best > most) return far;
  }
  return now_[right.size()];
}

std::size_t EditDistanceAllowed(std::string_view left, std::string_view right) {
  return std::max(left.size(), right.size()) / 3;
}

std::string NearestName(std::string_view wanted, std::span<const std::string> known) {
  NameDistance distances;
  const std::string* nearest = nullptr;
  std::size_t nearest_distance = 0;
  for (const std::string& name : known) {
    std::size_t most = EditDistanceAllowed(wanted, name);
    if (nearest != nullptr) {
      if (nearest_distance == 0) break;
      most = std::min(most, nearest_distance - 1);
    }
    const std::size_t distance = distances.Between(wanted, name, most);
    if (distance > most) continue;
    nearest = &name;
    nearest_distance = distance;
  }
  return nearest == nullptr ? std::string() : *nearest;
}

}  // namespace simile::data
