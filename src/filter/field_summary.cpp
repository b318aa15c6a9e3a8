#include "filter/field_summary.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <absl/container/flat_hash_map.h>

#include "data/payload/field_type.h"

namespace simile::filter {
namespace {

SummaryValue ToSummaryValue(const Field& field, std::int64_t value) {
  if (field.type == FieldType::kTime) return data::TimeText(value);
  return value;
}
SummaryValue ToSummaryValue(const Field& /*field*/, Number number) {
  if (number.is_rounded()) return number.whole();
  return number.value;
}

FieldSummary OfBooleans(std::uint64_t of_true, std::uint64_t of_false, std::size_t values_max) {
  std::vector<FieldSummary::Value> values{{false, of_false}, {true, of_true}};
  if (of_true > of_false) std::swap(values[0], values[1]);
  std::erase_if(values, [](const FieldSummary::Value& value) { return value.rows == 0; });
  FieldSummary summary;
  summary.distinct_values = values.size();
  if (values.size() > values_max) values.resize(values_max);
  summary.most_common = std::move(values);
  return summary;
}

struct Summarizer {
  const Field& field;
  std::size_t values_max;
  base::LongWork& work;

  absl::StatusOr<FieldSummary> operator()(std::monostate) const { return FieldSummary{}; }

  absl::StatusOr<FieldSummary> operator()(const KeywordColumn& column) const {
    const auto is_before = [&column](std::size_t a, std::size_t b) {
      const std::uint64_t rows_a = column.CountRows(a);
      const std::uint64_t rows_b = column.CountRows(b);
      return rows_a != rows_b ? rows_a > rows_b : a < b;
    };
    constexpr std::uint64_t kCompareNs = 20;
    const auto listed = std::min(column.keyword_count(), values_max);
    std::vector<std::size_t> first;  // a heap; the value that is last in order is at its front
    for (std::size_t keyword = 0; keyword < column.keyword_count(); ++keyword) {
      if (absl::Status status = work.Did(kCompareNs); !status.ok()) return status;
      if (first.size() == listed) {
        if (listed == 0 || !is_before(keyword, first.front())) continue;
        std::ranges::pop_heap(first, is_before);
        first.pop_back();
      }
      first.push_back(keyword);
      std::ranges::push_heap(first, is_before);
    }
    std::ranges::sort_heap(first, is_before);
    FieldSummary summary;
    summary.distinct_values = column.keyword_count();
    for (const std::size_t keyword : first) {
      FieldSummary::Value& common = summary.most_common.emplace_back();
      common.value = std::string(column.Text(keyword));
      common.rows = column.CountRows(keyword);
    }
    return summary;
  }

  template <class Value>
  absl::StatusOr<FieldSummary> operator()(const OrderedColumn<Value>& column) const {
    FieldSummary summary;
    summary.distinct_values = column.distinct_count();
    if (column.empty()) return summary;
    summary.least = ToSummaryValue(field, column.least());
    summary.greatest = ToSummaryValue(field, column.greatest());
    return summary;
  }

  absl::StatusOr<FieldSummary> operator()(const BooleanColumn& column) const {
    return OfBooleans(column.with_true.size(), column.with_false.size(), values_max);
  }
};

// Summarizes some rows of a field.
struct RowsSummarizer {
  const Filters& filters;
  const Field& field;
  const RowMask& rows;
  std::size_t values_max;
  base::LongWork& work;

  absl::StatusOr<FieldSummary> operator()(std::monostate) const { return FieldSummary{}; }

  absl::StatusOr<FieldSummary> operator()(const KeywordColumn& /*column*/) const {
    const absl::StatusOr<GroupField> keywords = filters.FindGroups(field.name, filters.payload());
    if (!keywords.ok()) return keywords.status();
    absl::flat_hash_map<std::uint32_t, std::uint64_t> counts;
    const absl::Status counted = Count(*keywords, counts);
    if (!counted.ok()) return counted;
    FieldSummary summary;
    summary.distinct_values = counts.size();
    std::vector<std::pair<std::uint32_t, std::uint64_t>> first(counts.begin(), counts.end());
    const std::size_t listed = std::min(first.size(), values_max);
    std::ranges::partial_sort(first, first.begin() + static_cast<std::ptrdiff_t>(listed),
                              [](const auto& a, const auto& b) {
                                return a.second != b.second ? a.second > b.second
                                                            : a.first < b.first;
                              });
    for (std::size_t i = 0; i < listed; ++i) {
      FieldSummary::Value& common = summary.most_common.emplace_back();
      common.value = keywords->Text(first[i].first);
      common.rows = first[i].second;
    }
    return summary;
  }

  template <class Value>
  absl::StatusOr<FieldSummary> operator()(const OrderedColumn<Value>& column) const {
    constexpr std::uint64_t kVisitNs = 2;
    FieldSummary summary;
    std::optional<Value> least;
    std::optional<Value> greatest;
    absl::Status status;
    column.VisitAscending([&](Row row, Value value) {
      status = work.Did(kVisitNs);
      if (!status.ok() || !rows.Allows(row)) return status.ok();
      if (!least) least = value;
      if (!greatest || *greatest < value) ++summary.distinct_values;
      greatest = value;
      return true;
    });
    if (!status.ok()) return status;
    if (least) summary.least = ToSummaryValue(field, *least);
    if (greatest) summary.greatest = ToSummaryValue(field, *greatest);
    return summary;
  }

  absl::StatusOr<FieldSummary> operator()(const BooleanColumn& column) const {
    return OfBooleans(column.with_true.CountAllowed(rows), column.with_false.CountAllowed(rows),
                      values_max);
  }

  // How many of the rows have each keyword.
  absl::Status Count(const GroupField& keywords,
                     absl::flat_hash_map<std::uint32_t, std::uint64_t>& counts) const {
    constexpr std::uint64_t kDecodeNs = 500;
    constexpr std::size_t kPieceRows = 1'024;
    std::vector<std::uint32_t> of_row;
    for (std::size_t begin = 0; begin < rows.row_count(); begin += kPieceRows) {
      const auto end = static_cast<Row>(std::min(begin + kPieceRows, rows.row_count()));
      std::uint64_t decoded = 0;
      rows.ForEachAllowed(static_cast<Row>(begin), end, [&](Row row) {
        keywords.ReadGroups(row, of_row);
        for (const std::uint32_t keyword : of_row) ++counts[keyword];
        ++decoded;
      });
      absl::Status status = work.Did(decoded * kDecodeNs);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::StatusOr<FieldSummary> Summarize(const Field& field, std::size_t values_max,
                                       base::LongWork& work) {
  return std::visit(Summarizer{field, values_max, work}, field.column);
}

absl::StatusOr<FieldSummary> SummarizeRows(const Filters& filters, const Field& field,
                                           const RowMask& rows, std::size_t values_max,
                                           base::LongWork& work) {
  return std::visit(RowsSummarizer{filters, field, rows, values_max, work}, field.column);
}

}  // namespace simile::filter
