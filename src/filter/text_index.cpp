#include "filter/text_index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <utility>

#include "base/nearest_name.h"

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

// The next place of the needle in the text, from `begin` on; npos when there is none.
absl::StatusOr<std::size_t> FindNext(std::string_view text, std::size_t begin,
                                     std::string_view needle, base::LongWork& work) {
  constexpr std::size_t kBlockBytes = 64U << 10;
  constexpr std::uint64_t kMatchNs = 200;  // to find the row of a match and its quality
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

// The rows of a column that contain the needle, one after the other.
class TextIndex::ColumnSearch {
 public:
  // REQUIRES: the column and the needle outlive the search; the needle is not empty.
  ColumnSearch(const Column& column, std::string_view needle)
      : column_(&column), all_(column.text.data(), column.text.size()), needle_(needle) {}

  // The row found last; empty at the end.
  const std::optional<TextMatch>& found() const { return found_; }

  // Finds the next row that the mask allows. Errors: work's.
  absl::Status Advance(const RowMask* mask, base::LongWork& work) {
    found_.reset();
    while (searched_ < all_.size()) {
      const absl::StatusOr<std::size_t> at = FindNext(all_, searched_, needle_, work);
      if (!at.ok()) return at.status();
      if (*at == std::string_view::npos) break;
      const auto end = std::upper_bound(column_->ends.begin(), column_->ends.end(), *at);
      searched_ = *end;
      const auto row = static_cast<Row>(end - column_->ends.begin());
      if (mask != nullptr && !mask->Allows(row)) continue;
      const std::size_t begin = row == 0 ? 0 : column_->ends[row - 1];
      found_ = TextMatch{row, BestQuality(all_.substr(begin, *end - begin), needle_)};
      return absl::OkStatus();
    }
    searched_ = all_.size();
    return absl::OkStatus();
  }

 private:
  const Column* column_;
  std::string_view all_;
  std::string_view needle_;
  std::uint64_t searched_ = 0;  // the text before this place was searched
  std::optional<TextMatch> found_;
};

absl::StatusOr<TextMatches> TextIndex::Find(const std::vector<std::string>& fields,
                                            std::string_view text, std::size_t limit,
                                            const RowMask* mask, base::LongWork& work) const {
  const std::string needle = FoldText(text);
  TextMatches matches;
  if (needle.empty()) return matches;
  std::vector<ColumnSearch> searches;
  for (const std::string& field : fields) {
    const auto position = std::find(fields_.begin(), fields_.end(), field);
    assert(position != fields_.end());
    searches.emplace_back(columns_[static_cast<std::size_t>(position - fields_.begin())], needle);
    if (absl::Status found = searches.back().Advance(mask, work); !found.ok()) return found;
  }

  std::array<std::vector<TextMatch>, 3> by_quality;
  for (;;) {
    std::optional<TextMatch> next;  // the lowest row, by its best string
    for (const ColumnSearch& search : searches) {
      const std::optional<TextMatch>& found = search.found();
      if (!found || (next && found->row > next->row)) continue;
      const bool same_row = next && found->row == next->row;
      next = TextMatch{found->row,
                       same_row ? std::min(found->quality, next->quality) : found->quality};
    }
    if (!next) break;
    ++matches.match_count;
    if (next->quality == MatchQuality::kWhole) ++matches.whole_match_count;
    std::vector<TextMatch>& alike = by_quality[static_cast<std::size_t>(next->quality)];
    if (alike.size() < limit) alike.push_back(*next);
    for (ColumnSearch& search : searches) {
      if (!search.found() || search.found()->row != next->row) continue;
      if (absl::Status found = search.Advance(mask, work); !found.ok()) return found;
    }
  }
  for (const std::vector<TextMatch>& alike : by_quality) {
    const std::size_t left = limit - matches.first.size();
    matches.first.insert(matches.first.end(), alike.begin(),
                         alike.begin() + static_cast<std::ptrdiff_t>(std::min(left, alike.size())));
  }
  return matches;
}

absl::StatusOr<std::string> TextIndex::Nearest(const std::vector<std::string>& fields,
                                               std::string_view text, const RowMask* mask,
                                               base::LongWork& work) const {
  constexpr std::uint64_t kRowNs = 1;  // per row that is skipped
  const std::string wanted = FoldText(text);
  base::NearestSearch search(wanted);
  for (const std::string& field : fields) {
    const auto position = std::find(fields_.begin(), fields_.end(), field);
    assert(position != fields_.end());
    const Column& column = columns_[static_cast<std::size_t>(position - fields_.begin())];
    std::size_t begin = 0;
    for (std::size_t row = 0; row < column.ends.size(); begin = column.ends[row++]) {
      if (mask != nullptr && !mask->Allows(static_cast<Row>(row))) {
        if (absl::Status status = work.Did(kRowNs); !status.ok()) return status;
        continue;
      }
      std::string_view values(column.text.data() + begin, column.ends[row] - begin);
      while (!values.empty()) {
        const std::string_view value = values.substr(0, values.find(kValueEnd));
        if (absl::Status looked = search.ConsiderText(value, work); !looked.ok()) return looked;
        values.remove_prefix(value.size() + 1);
      }
    }
  }
  return std::string(search.found());
}

std::uint64_t TextIndex::bytes() const {
  std::uint64_t bytes = 0;
  for (const Column& column : columns_) {
    bytes += column.text.capacity() + column.ends.capacity() * sizeof(std::uint64_t);
  }
  return bytes;
}

}  // namespace simile::filter
