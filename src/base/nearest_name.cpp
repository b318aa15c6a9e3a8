#include "base/nearest_name.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"
#include "base/utf8.h"

namespace simile::base {
namespace {

// Unrelated names share shorter beginnings.
constexpr std::size_t kContinuedCharactersMin = 3;

// UTF-8's continuation bytes begin with the bits 10; every other byte begins a character.
std::size_t CharacterCount(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

bool Continues(std::string_view beginning, std::string_view name) {
  return name.size() > beginning.size() &&
         EqualsIgnoringCase(beginning, name.substr(0, beginning.size()));
}

// "677" of "000677"; empty for a text that is no whole number.
std::string_view WithoutLeadingZeros(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
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
    // Cells further than `most` from the diagonal exceed `most`, so only the band is computed.
    const std::size_t first = i > most ? i - most : 1;
    const std::size_t end = std::min(right.size(), i + most);
    now_[first - 1] = first == 1 ? std::min(i, far) : far;
    if (end < right.size()) now_[end + 1] = far;
    std::size_t best = now_[first - 1];
    const char letter = LowerAscii(left[i - 1]);
    for (std::size_t j = first; j <= end; ++j) {
      const char other = LowerAscii(right[j - 1]);
      std::size_t cost =
          std::min({last_[j] + 1, now_[j - 1] + 1, last_[j - 1] + (letter == other ? 0U : 1U)});
      const bool swapped =
          i > 1 && j > 1 && letter == LowerAscii(right[j - 2]) && LowerAscii(left[i - 2]) == other;
      if (swapped) cost = std::min(cost, before_last_[j - 2] + 1);
      now_[j] = std::min(cost, far);
      best = std::min(best, now_[j]);
    }
    if (best > most) return far;
  }
  return now_[right.size()];
}

NearestSearch::NearestSearch(std::string_view wanted)
    : wanted_(wanted),
      number_(WithoutLeadingZeros(wanted)),
      long_enough_to_continue_(CharacterCount(wanted) >= kContinuedCharactersMin) {}

void NearestSearch::Consider(std::string_view name) {
  ConsiderContinuation(name);
  std::size_t most = std::max(wanted_.size(), name.size()) / 3;
  if (near_) {
    if (near_distance_ == 0) return;
    most = std::min(most, near_distance_ - 1);
  }
  const std::size_t distance = distances_.Between(wanted_, name, most);
  if (distance > most) return;
  near_ = name;
  near_distance_ = distance;
}

absl::Status NearestSearch::ConsiderText(std::string_view text, LongWork& work) {
  // The estimated cost of a text, and of a cell of the distance table.
  constexpr std::uint64_t kTextNs = 10;
  constexpr std::uint64_t kCellNs = 2;
  const std::size_t shorter = std::min(wanted_.size(), text.size());
  const std::size_t longer = std::max(wanted_.size(), text.size());
  const std::size_t most = longer / 3;
  const bool is_near = longer <= kTextBytesMax && longer - shorter <= most;
  const std::uint64_t cells = is_near ? shorter * (2 * most + 1) : 0;
  absl::Status status = work.Did(kTextNs + cells * kCellNs);
  if (status.ok() && longer <= kTextBytesMax) Consider(text);
  return status;
}

void NearestSearch::ConsiderContinuation(std::string_view name) {
  if (!number_.empty() && !same_number_ && WithoutLeadingZeros(name) == number_) {
    same_number_ = name;
  }
  if (!long_enough_to_continue_ || (continuation_ && name.size() >= continuation_->size())) return;
  if (Continues(wanted_, name)) continuation_ = name;
}

std::string_view NearestSearch::found() const {
  if (same_number_) return *same_number_;
  return near_ ? *near_ : continuation_.value_or(std::string_view());
}

std::string NearestName(std::string_view wanted, std::span<const std::string> known) {
  NearestSearch search(wanted);
  for (const std::string& name : known) search.Consider(name);
  return std::string(search.found());
}

std::string DidYouMean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format(" Did you mean {}?", Quoted(nearest));
}

}  // namespace simile::base
