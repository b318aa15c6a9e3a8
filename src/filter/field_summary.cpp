#include "filter/field_summary.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "data/time_value.h"

namespace simile::filter {
namespace {

struct Summarizer {
  const Field& field;
  std::size_t values_max;

  FieldSummary operator()(std::monostate) const { return {}; }

  FieldSummary operator()(const KeywordColumn& column) const {
    std::vector<std::size_t> order(column.keyword_count());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto listed = std::min(order.size(), values_max);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(listed),
                      order.end(), [&](std::size_t a, std::size_t b) {
                        const std::uint64_t rows_a = column.RowsOf(a);
                        const std::uint64_t rows_b = column.RowsOf(b);
                        return rows_a != rows_b ? rows_a > rows_b : a < b;
                      });
    FieldSummary summary;
    summary.distinct_values = order.size();
    for (std::size_t i = 0; i < listed; ++i) {
      summary.most_common.push_back(
          {std::string(column.Spelling(order[i])), column.RowsOf(order[i])});
    }
    return summary;
  }

  template <class Value>
  FieldSummary operator()(const OrderedColumn<Value>& column) const {
    FieldSummary summary;
    summary.distinct_values = column.DistinctCount();
    if (column.empty()) return summary;
    summary.least = ValueOf(column.least());
    summary.greatest = ValueOf(column.greatest());
    return summary;
  }

  FieldSummary operator()(const RowSet& true_rows) const {
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
  SummaryValue ValueOf(double value) const { return value; }
};

}  // namespace

FieldSummary Summarize(const Field& field, std::size_t values_max) {
  return std::visit(Summarizer{field, values_max}, field.column);
}

}  // namespace simile::filter
