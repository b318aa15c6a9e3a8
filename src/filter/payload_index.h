#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/payload/field_type.h"
#include "data/payload/payload_table.h"
#include "filter/keyword_column.h"
#include "filter/ordered_column.h"
#include "filter/row_set.h"
#include "filter/text_index.h"

namespace simile::filter {

using data::FieldType;

// The rows with a true value and those with a false one: a list may have both.
struct BooleanColumn {
  RowSet with_true;
  RowSet with_false;

  std::uint64_t bytes() const { return with_true.bytes() + with_false.bytes(); }
};

// The values of one payload field, indexed for filters.
struct Field {
  std::string name;
  bool is_nested = false;  // a member of an object
  FieldType type = FieldType::kOther;
  RowSet present;  // rows with a value that fits the type
  RowSet unfit;    // rows with a value that does not fit: it passes no condition and no NOT
  Row first_unfit_row = 0;  // the first of `unfit`; undefined when `unfit` is empty
  // Chosen by the type of the values, or of the elements of lists: keywords; integers and times
  // (microseconds since 1970); numbers; booleans. Nothing for kOther.
  std::variant<std::monostate, KeywordColumn, OrderedColumn<std::int64_t>, OrderedColumn<Number>,
               BooleanColumn>
      column;

  std::uint64_t bytes() const;
};

// All fields of a collection's payload, with the types that the load has chosen
// (data::ChooseFieldTypes). Immutable; safe to share.
class PayloadIndex {
 public:
  PayloadIndex() = default;
  // Cost: one pass over the payload.
  static PayloadIndex Build(const data::PayloadTable& payload);

  // By name. A field's index here is its number in the payload.
  std::span<const Field> fields() const { return fields_; }
  // Null when no row has the field.
  const Field* Find(std::string_view name) const;
  std::uint64_t bytes() const;

 private:
  std::vector<Field> fields_;
};

// The memory of an index before it is built.
struct IndexEstimate {
  std::uint64_t bytes = 0;        // of the finished index
  std::uint64_t build_bytes = 0;  // the most that building takes in addition
};

// The rows that an index was built over, and all rows that it will be built over. The first half of
// the sampled rows is a sample, too (data::DatasetSample).
struct SampledRows {
  std::size_t sampled = 0;  // at least 1
  std::size_t total = 0;

  double times() const { return static_cast<double>(total) / static_cast<double>(sampled); }
};

// Extrapolates from an index over a sample. For an index over all rows, the bytes are its own.
IndexEstimate EstimateTextIndex(const TextIndex& sample, const SampledRows& rows);
// The different keywords of a field are estimated by data::DistinctCount.
// Cost: one pass over the sample's keywords.
IndexEstimate EstimatePayloadIndex(const PayloadIndex& sample, const SampledRows& rows);

}  // namespace simile::filter
