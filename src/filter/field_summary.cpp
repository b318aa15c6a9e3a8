#include "filter/field_summary.h"

#include <algorithm>
#include <variant>

#include "data/time_value.h"

namespace simile::filter {
namespace {

struct Summarizer {
  const Field& field;
  std::size_t values_max;
  base::LongWork& work;

  absl::StatusOr<FieldSummary> operator()(std::monostate) const { return FieldSummary{}; }

  absl::StatusOr<FieldSummary> operator()(const KeywordColumn& column) const {
    const auto is_before = [&column](std::size_t a, std::size_t b) {
      const std::uint64_t rows_a = column.RowsOf(a);
      const std::uint64_t rows_b = column.RowsOf(b);
      return rows_a != rows_b ? rows_a > rows_b : a < b;
    };
    constexpr std::uint64_t kCompareNs = 20;
    const auto listed = std::min(column.keyword_count(), values_max);
    std::vector<std::size_t> first;  // a heap, the last of them at its front
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
      summary.most_common.push_back({std::string(column.Text(keyword)), column.RowsOf(keyword)});
    }
    return summary;
  }

  template <class Value>
  absl::StatusOr<FieldSummary> operator()(const OrderedColumn<Value>& column) const {
    FieldSummary summary;
    summary.distinct_values = column.distinct_count();
    if (column.empty()) return summary;
    summary.least = ValueOf(column.least());
    summary.greatest = ValueOf(column.greatest());
    return summary;
  }

  absl::StatusOr<FieldSummary> operator()(const RowSet& true_rows) const {
    FieldSummary summary;
    const std::uint64_t of_true = true_rows.size();
    const std::uint64_t of_false = field.present.size() - of_true;
    std::vector<FieldSummary::Value> values{{false, of_false}, {true, of_true}};
    if (of_true > of_false) std::swap(values[0], values[1]);
    std::erase_if(values, [](const FieldSummary::Value& value) { return value.rows == 0; });
    summary.distinct_values = values.size();
    if (values.size() > values_max) values.resize(values_max);
    summary.most_common = std::move(values);
    return summary;
  }

  SummaryValue ValueOf(std::int64_t value) const {
    if (field.type == FieldType::kTime) return data::TimeText(value);
    return value;
  }
  SummaryValue ValueOf(Number number) const {
    if (number.is_rounded()) return number.whole();
    return number.value;
  }
};

}  // namespace

absl::StatusOr<FieldSummary> Summarize(const Field& field, std::size_t values_max,
                                       base::LongWork& work) {
  return std::visit(Summarizer{field, values_max, work}, field.column);
}

}  // namespace simile::filter
