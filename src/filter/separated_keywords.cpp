#include "filter/separated_keywords.h"

namespace simile::filter {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::vector<std::string_view> SplitKeywords(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t bar = text.find(kKeywordSeparator);
    const std::string_view part = Trimmed(text.substr(0, bar));
    if (!part.empty()) parts.push_back(part);
    if (bar == std::string_view::npos) return parts;
    text.remove_prefix(bar + 1);
  }
}

void SeparatorEvidence::Add(std::string_view text) {
  for (const std::string_view part : SplitKeywords(text)) ++occurrences_[std::string(part)];
}

bool SeparatorEvidence::SeparatesKeywords() const {
  std::uint64_t all = 0;
  std::uint64_t repeated = 0;
  for (const auto& [part, count] : occurrences_) {
    all += count;
    if (count > 1) repeated += count;
  }
  return 2 * repeated > all;
}

}  // namespace simile::filter
