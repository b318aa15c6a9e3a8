#include "filter/payload_index.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "data/payload/field_type.h"
#include "filter/keyword_column.h"

namespace simile::filter {
namespace {

// Calls visit(field number, row, value) for every value of every row except null.
template <class Visit>
void ForEachValue(const data::PayloadTable& payload, Visit visit) {
  for (std::size_t r = 0; r < payload.row_count(); ++r) {
    const auto row = static_cast<Row>(r);
    payload.VisitFields(row, [&](std::uint32_t field_number, const PayloadValue& value) {
      if (!std::holds_alternative<std::monostate>(value.value)) visit(field_number, row, value);
    });
  }
}

Number ToNumber(const PayloadValue& value) {
  const auto* const whole = std::get_if<std::int64_t>(&value.value);
  return whole != nullptr ? Number(*whole) : Number(std::get<double>(value.value));
}

// Builds one field's column from its values.
class FieldBuilder {
 public:
  //   field  borrowed
  explicit FieldBuilder(const data::FieldInfo& field) : field_(field) {
    // Reserved, so that the arrays are not moved while they grow.
    const auto rows = static_cast<std::size_t>(field.values.count());
    present_.reserve(rows);
    if (field.type == FieldType::kInteger || field.type == FieldType::kTime) whole_.reserve(rows);
    if (field.type == FieldType::kNumber) numbers_.reserve(rows);
    if (field.type == FieldType::kKeyword) keywords_.Reserve(rows);
  }

  void Add(Row row, const PayloadValue& value) {
    (AddValue(row, value) ? present_ : unfit_).push_back(row);
  }

  //   row_count  of the collection
  Field Build(std::size_t row_count) && {
    Field field;
    field.name = field_.name;
    field.is_nested = field_.is_nested;
    field.type = field_.type;
    const std::vector<Row>& rows = IsList(field_.type) ? element_rows_ : present_;
    switch (data::TypeOfElements(field_.type)) {
      case FieldType::kKeyword:
        field.column = std::move(keywords_).Build(row_count);
        break;
      case FieldType::kInteger:
      case FieldType::kTime:
        field.column = OrderedColumn<std::int64_t>(whole_, rows);
        break;
      case FieldType::kNumber:
        field.column = OrderedColumn<Number>(numbers_, rows);
        break;
      case FieldType::kBoolean:
        field.column = BooleanColumn{RowSet(true_, row_count), RowSet(false_, row_count)};
        break;
      default:
        break;
    }
    field.present = RowSet(present_, row_count);
    field.unfit = RowSet(unfit_, row_count);
    if (!unfit_.empty()) field.first_unfit_row = unfit_.front();
    return field;
  }

 private:
  // Whether the value fits the type.
  bool AddValue(Row row, const PayloadValue& value) {
    const auto* const text = std::get_if<std::string>(&value.value);
    if (field_.type == FieldType::kTime) {  // parsed once
      const std::optional<std::int64_t> time = text ? data::ParseTime(*text) : std::nullopt;
      if (time) whole_.push_back(*time);
      return time.has_value();
    }
    const bool is_keyword = data::TypeOfElements(field_.type) == FieldType::kKeyword;
    if (!(is_keyword && text != nullptr) && !data::Fits(field_.type, data::ClassifyValue(value))) {
      return false;
    }
    switch (field_.type) {
      case FieldType::kKeyword:
      case FieldType::kKeywords:
        ForEachKeyword(field_, value,
                       [&](std::string_view keyword) { keywords_.Add(row, keyword); });
        return true;
      case FieldType::kInteger:
        whole_.push_back(*data::ToWhole(value));
        return true;
      case FieldType::kIntegers:
        AddElements(row, value, whole_,
                    [](const PayloadValue& one) { return *data::ToWhole(one); });
        return true;
      case FieldType::kNumber:
        numbers_.push_back(ToNumber(value));
        return true;
      case FieldType::kNumbers:
        AddElements(row, value, numbers_, &ToNumber);
        return true;
      case FieldType::kBoolean:
      case FieldType::kBooleans:
        AddBooleans(row, value);
        return true;
      case FieldType::kTime:
      case FieldType::kOther:
        break;
    }
    return true;
  }

  // Adds the distinct elements of a list, or the one value.
  template <class Value, class Read>
  void AddElements(Row row, const PayloadValue& value, std::vector<Value>& values, Read read) {
    const auto begin = static_cast<std::ptrdiff_t>(values.size());
    ForEachElement(value, [&](const PayloadValue& one) { values.push_back(read(one)); });
    std::sort(values.begin() + begin, values.end());
    values.erase(std::unique(values.begin() + begin, values.end()), values.end());
    element_rows_.resize(values.size(), row);
  }

  void AddBooleans(Row row, const PayloadValue& value) {
    ForEachElement(value, [&](const PayloadValue& one) {
      std::vector<Row>& rows = std::get<bool>(one.value) ? true_ : false_;
      if (rows.empty() || rows.back() != row) rows.push_back(row);
    });
  }

  const data::FieldInfo& field_;
  std::vector<Row> present_;
  std::vector<Row> unfit_;
  KeywordColumn::Builder keywords_;
  std::vector<std::int64_t> whole_;
  std::vector<Number> numbers_;
  std::vector<Row> element_rows_;  // of lists: [whole_] or [numbers_]
  std::vector<Row> true_;
  std::vector<Row> false_;
};

std::uint64_t ScaledBy(double times, std::uint64_t count) {
  return static_cast<std::uint64_t>(times * static_cast<double>(count));
}

// The memory of one field while the index is built: see FieldBuilder and PayloadIndex::Build.
struct FieldEstimate {
  std::uint64_t bytes = 0;
  std::uint64_t collected_bytes = 0;  // its collected values, freed when its column is built
  std::uint64_t column_bytes = 0;     // in addition, while its column is built
};

struct ColumnEstimate {
  const SampledRows& rows;
  bool is_list;

  FieldEstimate operator()(std::monostate) const { return {}; }
  FieldEstimate operator()(const BooleanColumn& column) const {
    const std::uint64_t of_true = ScaledBy(rows.times(), column.with_true.size());
    const std::uint64_t of_false = ScaledBy(rows.times(), column.with_false.size());
    return {RowSet::BytesFor(of_true, rows.total) + RowSet::BytesFor(of_false, rows.total),
            (of_true + of_false) * sizeof(Row), 0};
  }
  template <class Value>
  FieldEstimate operator()(const OrderedColumn<Value>& column) const {
    const std::uint64_t values = ScaledBy(rows.times(), column.size());
    constexpr std::uint64_t kEach = sizeof(Value) + sizeof(Row);
    // The elements of lists are collected with their rows, in arrays that grow by doubling. Sorting
    // takes an array of positions, and a merge buffer of half its size.
    return {values * kEach, is_list ? 2 * values * kEach : values * sizeof(Value),
            values * sizeof(std::uint32_t) * 3 / 2};
  }
  FieldEstimate operator()(const KeywordColumn& column) const {
    const KeywordColumn::Estimate estimate =
        column.EstimateFor(rows.sampled, static_cast<std::size_t>(rows.total));
    return {estimate.bytes, estimate.collected_bytes, estimate.column_bytes};
  }
};

FieldEstimate EstimateField(const Field& field, const SampledRows& rows) {
  const std::uint64_t present = ScaledBy(rows.times(), field.present.size());
  FieldEstimate estimate = std::visit(ColumnEstimate{rows, IsList(field.type)}, field.column);
  const std::uint64_t unfit = ScaledBy(rows.times(), field.unfit.size());
  estimate.bytes += RowSet::BytesFor(present, rows.total) + RowSet::BytesFor(unfit, rows.total);
  estimate.collected_bytes += (present + unfit) * sizeof(Row);
  return estimate;
}

}  // namespace

std::uint64_t Field::bytes() const {
  const auto column_bytes = [](const auto& indexed) -> std::uint64_t {
    if constexpr (requires { indexed.bytes(); }) return indexed.bytes();
    return 0;
  };
  return present.bytes() + unfit.bytes() + std::visit(column_bytes, column);
}

PayloadIndex PayloadIndex::Build(const data::PayloadTable& payload) {
  std::vector<FieldBuilder> builders;
  builders.reserve(payload.fields().size());
  for (const data::FieldInfo& field : payload.fields()) builders.emplace_back(field);
  ForEachValue(payload, [&](std::uint32_t field_number, Row row, const PayloadValue& value) {
    builders[field_number].Add(row, value);
  });
  PayloadIndex index;
  index.fields_.reserve(builders.size());
  for (FieldBuilder& each : builders) {
    // Moved into the loop, so that its memory is freed before the next column is built.
    FieldBuilder builder = std::move(each);
    index.fields_.push_back(std::move(builder).Build(payload.row_count()));
  }
  return index;
}

const Field* PayloadIndex::Find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      fields_, name, {}, [](const Field& field) { return std::string_view(field.name); });
  return found != fields_.end() && found->name == name ? &*found : nullptr;
}

std::uint64_t PayloadIndex::bytes() const {
  std::uint64_t bytes = fields_.capacity() * sizeof(Field);
  for (const Field& field : fields_) bytes += field.bytes();
  return bytes;
}

IndexEstimate EstimateTextIndex(const TextIndex& sample, const SampledRows& rows) {
  const std::uint64_t bytes = ScaledBy(rows.times(), sample.bytes());
  // The text of a field is copied once its length is known.
  const std::uint64_t offsets = sample.fields().size() * rows.total * sizeof(std::uint64_t);
  return {bytes, bytes - std::min(bytes, offsets)};
}

IndexEstimate EstimatePayloadIndex(const PayloadIndex& sample, const SampledRows& rows) {
  std::vector<FieldEstimate> fields;
  for (const Field& field : sample.fields()) fields.push_back(EstimateField(field, rows));
  std::uint64_t collected = std::accumulate(
      fields.begin(), fields.end(), std::uint64_t{0},
      [](std::uint64_t sum, const FieldEstimate& field) { return sum + field.collected_bytes; });
  // Columns are built one after the other; each frees the values that were collected for it.
  IndexEstimate estimate;
  estimate.bytes = fields.size() * sizeof(Field);
  std::uint64_t most = 0;
  for (const FieldEstimate& field : fields) {
    estimate.bytes += field.bytes;
    most = std::max(most, estimate.bytes + collected + field.column_bytes);
    collected -= field.collected_bytes;
  }
  if (rows.sampled == rows.total) estimate.bytes = sample.bytes();
  estimate.build_bytes = most - std::min(most, estimate.bytes);
  return estimate;
}

}  // namespace simile::filter
