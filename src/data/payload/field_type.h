#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simile/matrix_view.h"
#include "simile/payload.h"

namespace simile::data {

// The type of a payload field in filters.
enum class FieldType : std::uint8_t {
  kKeyword,   // one text
  kKeywords,  // a list of texts, or one text
  kInteger,   // 12.0 is the integer 12
  kIntegers,  // a list of integers, or one integer
  kNumber,
  kNumbers,  // a list of numbers, or one number
  kBoolean,
  kBooleans,  // a list of booleans, or one boolean
  kTime,      // texts that ParseTime reads
  kOther,     // objects, other lists, values of several types: filters can only test their presence
};

// A type that collection.json gives to a field.
struct NamedFieldType {
  std::string field;
  FieldType type = FieldType::kOther;

  friend bool operator==(const NamedFieldType&, const NamedFieldType&) = default;
};

// As messages, listings and collection.json name it: "list of keywords".
std::string_view NameOf(FieldType type);
// The type of this name.
std::optional<FieldType> ParseFieldType(std::string_view name);
// All names, in the order of the types.
std::span<const std::string_view> FieldTypeNames();

// Whether values of the type are lists.
bool IsList(FieldType type);
// The type of the elements of a list; any other type itself.
FieldType TypeOfElements(FieldType type);

// What one value of a field is.
enum class ValueKind : std::uint8_t {
  kBoolean,
  kWhole,      // an integer, or a number without a fraction that is one, such as 12.0
  kFraction,   // any other number
  kTime,       // a text that is a time
  kLocalTime,  // a text that is a time without a zone, which is read as UTC
  kText,       // any other text
  kTexts,      // a list of texts
  kWholes,     // a list of values that are kWhole
  kFractions,  // a list of numbers, at least one of them kFraction
  kBooleans,   // a list of booleans
  kEmptyList,
  kObject,
  kObjects,  // a list of objects
  kOther,    // any other list
};
inline constexpr std::size_t kValueKindCount = 14;

// REQUIRES: not null.
ValueKind ClassifyValue(const PayloadValue& value);
// Whether filters on a field of the type read values of the kind.
bool Fits(FieldType type, ValueKind kind);
// The integer of a value of the kind kWhole: 12 for 12 and for 12.0. Nothing for any other value.
std::optional<std::int64_t> ToWhole(const PayloadValue& value);

// The microseconds since 1970 of a text. It is a time of RFC 3339 ("2024-05-31T12:00:00Z"), a time
// without its zone, which is UTC ("2024-05-31T12:00:00"), or a day, which begins in UTC
// ("2024-05-31"). A space may replace the T, and then " UTC" the Z. A time without its zone may
// lack the seconds. Nothing for any other text.
std::optional<std::int64_t> ParseTime(std::string_view text);
// Whether a time of day lacks its zone. REQUIRES: ParseTime reads the text.
bool LacksZone(std::string_view text);

// The inverse of ParseTime: RFC 3339 in UTC.
std::string TimeText(std::int64_t microseconds);

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
  // Whether no later value can change how the values are read: all are booleans, all are integers,
  // or all are texts and some text is no time.
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
