#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "base/long_work.h"
#include "data/payload/payload_table.h"
#include "simile/row_mask.h"

namespace simile::filter {

// Normalizes text for comparison: lower case, no accents, compatibility forms unified, typographic
// quotes and dashes plain, no invisible characters, one space for a run of white space and none at
// the ends (utf8proc: NFKD, marks stripped, case folded, punctuation lumped). Scripts that write
// vowels or voicing as marks lose these marks, so a search in them finds slightly more. Invalid
// UTF-8, which readers reject, folds to nothing.
std::string FoldText(std::string_view text);

// Whether two texts differ only in letter case, compatibility forms, punctuation, white space, and
// marks of Latin and Greek letters. Marks of other scripts count. Texts equal by EqualFolded have
// equal FoldText.
bool EqualFolded(std::string_view a, std::string_view b);

enum class MatchQuality : std::uint8_t { kWhole, kPrefix, kPart };

struct TextMatch {
  Row row = 0;
  MatchQuality quality = MatchQuality::kPart;
};

struct TextMatches {
  std::vector<TextMatch> first;   // the best `limit`: whole, then prefix, then part; by row
  std::uint64_t match_count = 0;  // all of them
  std::uint64_t whole_match_count = 0;
};

// Folded values of string fields, to find rows by title. Immutable; safe to share.
class TextIndex {
 public:
  TextIndex() = default;
  // Omits fields that no row has. A list field matches by any of its strings.
  static TextIndex Build(const data::PayloadTable& payload, const std::vector<std::string>& fields);

  const std::vector<std::string>& fields() const { return fields_; }
  // Finds the rows with the text in one of the fields, ignoring case and accents. A text that folds
  // to nothing matches no row. A row counts once, by its best string in any of the fields.
  //   mask  rows that may match, null for all; other rows are not counted
  // REQUIRES: each is one of fields(). Errors: work's. Cost: one pass over the folded text of each.
  absl::StatusOr<TextMatches> Find(const std::vector<std::string>& fields, std::string_view text,
                                   std::size_t limit, const RowMask* mask,
                                   base::LongWork& work) const;
  // The folded value nearest to a text that no row has; empty when no value is near.
  //   mask  as Find's
  // REQUIRES: as Find's. Errors: work's. Cost: as NearestSearch::ConsiderText for each value.
  absl::StatusOr<std::string> Nearest(const std::vector<std::string>& fields, std::string_view text,
                                      const RowMask* mask, base::LongWork& work) const;
  std::uint64_t bytes() const;

 private:
  struct Column {
    std::vector<char> text;           // folded values, each ended by '\n'
    std::vector<std::uint64_t> ends;  // [row_count] where the row's values end
  };
  class ColumnSearch;
  std::vector<std::string> fields_;
  std::vector<Column> columns_;
};

}  // namespace simile::filter
