#include "data/formats/vector_reader.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/message_text.h"
#include "data/formats/vector_layout.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

constexpr std::uint64_t kTileBytesMax = std::uint64_t{16} << 20;

// The Euclidean length of finite values, correct even when their squares overflow or underflow.
double Length(std::span<const double> values, double sum) {
  if (sum > 1e-280 && sum < 1e300) return std::sqrt(sum);
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  double scaled = 0;
  for (const double value : values) scaled += (value / largest) * (value / largest);
  return largest * std::sqrt(scaled);
}

// What can be wrong with a row.
enum class Fault : std::uint8_t { kNotFinite, kZero, kLength };

// Records the first invalid row and counts the rows with the same fault.
class FaultReport {
 public:
  explicit FaultReport(const VectorRules& rules) : rules_(rules) {}

  // The length of a valid row, 0 for one of zeros; nothing for an invalid one.
  //   sum  of the squares of its values
  std::optional<double> Check(std::uint64_t row, std::span<const double> values, double sum) {
    if (!std::isfinite(sum)) {
      const auto column = std::find_if_not(values.begin(), values.end(),
                                           [](double value) { return std::isfinite(value); });
      if (column != values.end()) {
        Record(Fault::kNotFinite, [&] {
          return fmt::format("row {} holds {} at column {}; vectors must be finite", row,
                             std::isnan(*column) ? "NaN"
                             : *column > 0       ? "infinity"
                                                 : "-infinity",
                             column - values.begin());
        });
        return std::nullopt;
      }
    }
    const double length = Length(values, sum);
    if (length == 0) return CheckZero(row);
    if (length < kNormMin || length > kNormMax) {
      Record(Fault::kLength, [&] {
        return fmt::format(
            "row {} has length {:.3g}; lengths must lie between 2^-60 (8.67e-19) "
            "and 2^60 (1.15e+18)",
            row, length);
      });
      return std::nullopt;
    }
    return length;
  }

  absl::Status ToStatus(std::string_view display_name, std::uint64_t row_count) const {
    if (!first_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{}: {} ({} of {} {} affected)", display_name, message_, base::Grouped(count_),
                    base::Counted(row_count, "row"), count_ == 1 ? "is" : "are"));
  }

 private:
  std::optional<double> CheckZero(std::uint64_t row) {
    if (rules_.metric == Metric::kDot || rules_.on_zero_row == OnZeroRow::kSkip) return 0.0;
    Record(Fault::kZero,
           [&] { return fmt::format("row {} is all zeros; {}", row, rules_.zero_row_advice); });
    return std::nullopt;
  }

  template <typename MakeMessage>
  void Record(Fault fault, MakeMessage make_message) {
    if (!first_) {
      first_ = fault;
      message_ = make_message();
    }
    if (*first_ == fault) ++count_;
  }

  const VectorRules& rules_;
  std::optional<Fault> first_;
  std::string message_;
  std::uint64_t count_ = 0;
};

// Rounds the values of a row as the matrix will keep them, so that the length of the fp32 row is
// checked. A value that is too large or too small for fp32 stays as it is, so that the error
// reports the length with it.
void RoundToFloat(std::span<double> values) {
  for (double& value : values) {
    if (std::abs(value) > kNormMax) continue;
    const auto rounded = static_cast<double>(static_cast<float>(value));
    if (rounded != 0) value = rounded;
  }
}

// Reads and checks all rows, and calls keep(row, values, length) for each valid one that is not
// zero.
template <typename KeepRow>
absl::Status ForEachRow(BufferedReader& in, const VectorLayout& layout, const VectorRules& rules,
                        VectorFacts& facts, KeepRow keep) {
  RowReader reader(in, layout);
  std::vector<double> values(layout.dim);
  const std::vector<double> weights = MakeColumnWeights(layout.dim);
  FaultReport faults(rules);
  EqualRows equal(layout.row_count);
  std::uint64_t zero_rows = 0;
  facts = {.shortest = std::numeric_limits<double>::infinity(),
           .longest = 0,
           .skipped_rows = {},
           .equal = {}};
  for (std::uint64_t row = 0; row < layout.row_count; ++row) {
    if (absl::Status status = reader.Next(values); !status.ok()) return status;
    if (rules.metric == Metric::kDot && layout.type == ElementType::kFloat64) RoundToFloat(values);
    const RowSums sums = SumRow(values, weights);
    const std::optional<double> length = faults.Check(row, values, sums.squares);
    if (!length) continue;
    if (*length == 0) {
      ++zero_rows;
      if (rules.metric == Metric::kCosine) {
        facts.skipped_rows.push_back(static_cast<Row>(row));
        continue;
      }
    }
    facts.shortest = std::min(facts.shortest, *length);
    facts.longest = std::max(facts.longest, *length);
    if (*length == 0) continue;
    equal.Add(static_cast<Row>(row), sums);
    keep(row, values, *length);
  }
  facts.equal = equal.Largest();
  if (zero_rows == layout.row_count) {
    return Refuse(in, "holds zeros alone; at least one row needs a direction");
  }
  return faults.ToStatus(in.display_name(), layout.row_count);
}

}  // namespace

RowReader::RowReader(BufferedReader& in, const VectorLayout& layout)
    : in_(in), layout_(layout), begin_(in.position()), row_(layout.row_bytes()) {}

absl::Status RowReader::Next(std::span<double> values) {
  assert(values.size() == layout_.dim && next_row_ < layout_.row_count);
  if (!layout_.by_column) {
    ++next_row_;
    if (absl::Status status = in_.ReadExact(row_); !status.ok()) return status;
    DecodeElements(layout_.type, row_, values);
    return absl::OkStatus();
  }
  if (next_row_ == tile_begin_ + tile_rows_) {
    if (absl::Status status = ReadTile(); !status.ok()) return status;
  }
  const std::size_t number_bytes = ElementBytes(layout_.type);
  const char* number = tile_.data() + (next_row_++ - tile_begin_) * number_bytes;
  for (std::size_t at = 0; at < row_.size(); at += number_bytes) {
    std::memcpy(row_.data() + at, number, number_bytes);
    number += tile_rows_ * number_bytes;
  }
  DecodeElements(layout_.type, row_, values);
  return absl::OkStatus();
}

absl::Status RowReader::ReadTile() {
  const std::uint64_t number_bytes = ElementBytes(layout_.type);
  tile_begin_ = next_row_;
  tile_rows_ = std::min(std::max<std::uint64_t>(kTileBytesMax / layout_.row_bytes(), 1),
                        layout_.row_count - tile_begin_);
  const std::uint64_t column_bytes = tile_rows_ * number_bytes;
  tile_.resize(column_bytes * layout_.dim);
  for (std::uint64_t column = 0; column < layout_.dim; ++column) {
    const std::uint64_t from = begin_ + (column * layout_.row_count + tile_begin_) * number_bytes;
    absl::Status status =
        in_.ReadAt(from, std::span(tile_).subspan(column * column_bytes, column_bytes));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Matrix> ReadMatrix(BufferedReader& in, const VectorLayout& layout,
                                  const VectorRules& rules, VectorFacts& facts) {
  absl::StatusOr<Matrix> matrix = Matrix::Create(layout.row_count, layout.dim);
  if (!matrix.ok()) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: {}", in.display_name(), std::string(matrix.status().message())));
  }
  const absl::Status status =
      ForEachRow(in, layout, rules, facts,
                 [&](std::uint64_t row, std::span<const double> values, double length) {
                   const double scale = rules.metric == Metric::kCosine ? 1 / length : 1;
                   float* const kept = matrix->MutableRow(row);
                   for (std::size_t i = 0; i < values.size(); ++i) {
                     kept[i] = static_cast<float>(values[i] * scale);
                   }
                 });
  if (!status.ok()) return status;
  return matrix;
}

absl::Status CheckRows(BufferedReader& in, const VectorLayout& layout, const VectorRules& rules,
                       VectorFacts& facts) {
  return ForEachRow(in, layout, rules, facts,
                    [](std::uint64_t, std::span<const double>, double) {});
}

}  // namespace simile::data
