#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/field_type.h"
#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// Values of one field: how many, where the first is, and what it is.
struct ValueSample {
  std::uint64_t count = 0;
  Row first_row = 0;       // the lowest; of no meaning without values
  std::string first_text;  // the value for messages: `"N/A"`, `7`, `a list`

  void Add(Row row, const PayloadValue& value);
  // Adds the values of another sample.
  void Add(const ValueSample& other);
};

// What the values of one field are, null not counted. Decides the field's type in filters.
class FieldValues {
 public:
  // REQUIRES: not null; rows are added in ascending order.
  void Add(Row row, const PayloadValue& value);

  std::uint64_t count() const;
  // Texts that are times, with or without a zone.
  std::uint64_t times() const {
    return Of(ValueKind::kTime).count + Of(ValueKind::kLocalTime).count;
  }
  // All texts, times included.
  std::uint64_t texts() const { return times() + Of(ValueKind::kText).count; }
  const ValueSample& Of(ValueKind kind) const { return kinds_[static_cast<std::size_t>(kind)]; }
  // Texts that hold a bar, which may separate keywords.
  const ValueSample& with_bar() const { return with_bar_; }
  // Texts that are numbers ("4.5"), and texts that are lists ("['rock']").
  const ValueSample& number_texts() const { return number_texts_; }
  const ValueSample& list_texts() const { return list_texts_; }

  // The type that at least nine in ten values have; kOther when no type has nine in ten, or there
  // is no value. Integers and numbers count together. A single value counts as a list of one value.
  FieldType Guess() const;
  // The values that filters on a field of the type do not read.
  ValueSample UnfitFor(FieldType type) const;
  // Whether no later value can change how these are read: all are booleans, all are integers, or
  // all are texts and some text is no time.
  bool HaveOneReading() const;

 private:
  // The list type of at least nine in ten values, or kOther.
  // REQUIRES: no single-value type has nine in ten values.
  FieldType GuessOfLists() const;

  std::array<ValueSample, kValueKindCount> kinds_;
  ValueSample with_bar_;
  ValueSample number_texts_;
  ValueSample list_texts_;
};

}  // namespace simile::data
