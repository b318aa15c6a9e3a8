#include "filter/text_index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

namespace simile::filter {
namespace {

// Folded text contains no line break, so a match never spans two values.
constexpr char kValueEnd = '\n';

void AppendFolded(const data::PayloadTable& payload, Row row, std::uint32_t field_number,
                  std::vector<char>& text) {
  const auto append = [&text](const std::string& value) {
    const std::string folded = FoldText(value);
    text.insert(text.end(), folded.begin(), folded.end());
    text.push_back(kValueEnd);
  };
  const PayloadValue value = payload.ReadField(row, field_number);
  if (const auto* const string = std::get_if<std::string>(&value.value)) append(*string);
  if (const auto* const list = std::get_if<PayloadList>(&value.value)) {
    for (const PayloadValue& element : *list) {
      if (const auto* const string = std::get_if<std::string>(&element.value)) append(*string);
    }
  }
}

// The best match of the needle among a row's values, each ended by kValueEnd.
// REQUIRES: at least one contains it.
MatchQuality BestQuality(std::string_view values, std::string_view needle) {
  MatchQuality best = MatchQuality::kPart;
  while (!values.empty()) {
    const std::string_view value = values.substr(0, values.find(kValueEnd));
    if (value == needle) return MatchQuality::kWhole;
    if (value.starts_with(needle)) best = MatchQuality::kPrefix;
    values.remove_prefix(value.size() + 1);
  }
  return best;
}

// Where the needle is next in the text, from `begin` on; npos when it is not.
absl::StatusOr<std::size_t> FindNext(std::string_view text, std::size_t begin,
                                     std::string_view needle, base::LongWork& work) {
  constexpr std::size_t kBlockBytes = 64U << 10;
  constexpr std::uint64_t kMatchNs = 200;  // to find its row, and how it matches
  for (; begin < text.size(); begin += kBlockBytes) {
    // A match that begins in the block may end behind it.
    const std::size_t at = text.substr(begin, kBlockBytes + needle.size() - 1).find(needle);
    const bool is_found = at != std::string_view::npos;
    absl::Status status = work.Did(is_found ? at + kMatchNs : kBlockBytes);
    if (!status.ok()) return status;
    if (is_found) return begin + at;
  }
  return std::string_view::npos;
}

}  // namespace

TextIndex TextIndex::Build(const data::PayloadTable& payload,
                           const std::vector<std::string>& fields) {
  TextIndex index;
  for (const std::string& field : fields) {
    const std::optional<std::uint32_t> field_number = payload.FieldNumber(field);
    if (!field_number) continue;
    Column column;
    column.ends.reserve(payload.row_count());
    for (std::size_t row = 0; row < payload.row_count(); ++row) {
      AppendFolded(payload, static_cast<Row>(row), *field_number, column.text);
      column.ends.push_back(column.text.size());
    }
    column.text.shrink_to_fit();
    index.fields_.push_back(field);
    index.columns_.push_back(std::move(column));
  }
  return index;
}

absl::StatusOr<TextMatches> TextIndex::Find(std::string_view field, std::string_view text,
                                            std::size_t limit, const RowMask* mask,
                                            base::LongWork& work) const {
  const auto position = std::find(fields_.begin(), fields_.end(), field);
  assert(position != fields_.end());
  const Column& column = columns_[static_cast<std::size_t>(position - fields_.begin())];
  const std::string needle = FoldText(text);
  TextMatches matches;
  if (needle.empty()) return matches;

  std::array<std::vector<TextMatch>, 3> by_quality;
  const std::string_view all(column.text.data(), column.text.size());
  std::uint64_t begin_of_next = 0;  // the text before it was searched
  while (begin_of_next < all.size()) {
    const absl::StatusOr<std::size_t> at = FindNext(all, begin_of_next, needle, work);
    if (!at.ok()) return at.status();
    if (*at == std::string_view::npos) break;
    const auto end = std::upper_bound(column.ends.begin(), column.ends.end(), *at);
    begin_of_next = *end;
    const auto row = static_cast<Row>(end - column.ends.begin());
    if (mask != nullptr && !mask->Allows(row)) continue;
    const std::size_t begin = row == 0 ? 0 : column.ends[row - 1];
    const MatchQuality quality = BestQuality(all.substr(begin, *end - begin), needle);
    ++matches.match_count;
    if (quality == MatchQuality::kWhole) ++matches.whole_match_count;
    std::vector<TextMatch>& alike = by_quality[static_cast<std::size_t>(quality)];
    if (alike.size() < limit) alike.push_back({row, quality});
  }
  for (const std::vector<TextMatch>& alike : by_quality) {
    const std::size_t left = limit - matches.first.size();
    matches.first.insert(matches.first.end(), alike.begin(),
                         alike.begin() + static_cast<std::ptrdiff_t>(std::min(left, alike.size())));
  }
  return matches;
}

std::uint64_t TextIndex::bytes() const {
  std::uint64_t bytes = 0;
  for (const Column& column : columns_) {
    bytes += column.text.capacity() + column.ends.capacity() * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace simile::filter
