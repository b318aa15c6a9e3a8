#include "filter/index_estimate.h"

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

namespace simile::filter {
namespace {

std::uint64_t ScaledBy(double times, std::uint64_t count) {
  return static_cast<std::uint64_t>(times * static_cast<double>(count));
}

// What one field takes while the index is built: see FieldBuilder and PayloadIndex::Build.
struct FieldEstimate {
  std::uint64_t bytes = 0;
  std::uint64_t collected_bytes = 0;  // its values, from the pass over the rows to its column
  std::uint64_t column_bytes = 0;     // besides, while its column is built
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

IndexEstimate EstimateTextIndex(const TextIndex& sample, const SampledRows& rows) {
  const std::uint64_t bytes = ScaledBy(rows.times(), sample.bytes());
  // The text of a field is copied when its length is known.
  const std::uint64_t offsets = sample.fields().size() * rows.total * sizeof(std::uint64_t);
  return {bytes, bytes - std::min(bytes, offsets)};
}

IndexEstimate EstimatePayloadIndex(const PayloadIndex& sample, const SampledRows& rows) {
  std::vector<FieldEstimate> fields;
  for (const Field& field : sample.fields()) fields.push_back(EstimateField(field, rows));
  std::uint64_t collected = std::accumulate(
      fields.begin(), fields.end(), std::uint64_t{0},
      [](std::uint64_t sum, const FieldEstimate& field) { return sum + field.collected_bytes; });
  // Columns are built one after the other, and each frees what was collected for it.
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
