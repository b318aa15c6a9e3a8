#include "data/vector_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "data/wording.h"
#include "simile/limits.h"

namespace simile::data {
namespace {

// Sums in eight lanes, because one chain of additions would wait for each.
double SumOfSquares(std::span<const double> values) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += values[i + lane] * values[i + lane];
    }
  }
  double sum = 0;
  for (; i < values.size(); ++i) sum += values[i] * values[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

// The Euclidean length of finite values, right even where their squares overflow or vanish.
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

// Remembers the first row at fault, and counts the rows that share its fault.
class FaultReport {
 public:
  // Whether the row is sound; when it is, its length.
  std::optional<double> Check(std::uint64_t row, std::span<const double> values) {
    const double sum = SumOfSquares(values);
    if (!std::isfinite(sum)) {
      const auto column = std::find_if_not(values.begin(), values.end(),
                                           [](double value) { return std::isfinite(value); });
      if (column != values.end()) {
        Note(Fault::kNotFinite, [&] {
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
    if (length == 0) {
      Note(Fault::kZero,
           [&] { return fmt::format("row {} is all zeros; a vector needs a direction", row); });
      return std::nullopt;
    }
    if (length < kNormMin || length > kNormMax) {
      Note(Fault::kLength, [&] {
        return fmt::format(
            "row {} has length {:.3g}; lengths must lie between 2^-60 (8.67e-19) "
            "and 2^60 (1.15e+18)",
            row, length);
      });
      return std::nullopt;
    }
    return length;
  }

  absl::Status ToStatus(std::string_view shown, std::uint64_t row_count) const {
    if (!first_) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}: {} ({} of {} {} affected)", shown, message_,
                                                  Grouped(count_), Counted(row_count, "row"),
                                                  count_ == 1 ? "is" : "are"));
  }

 private:
  template <typename MakeMessage>
  void Note(Fault fault, MakeMessage make_message) {
    if (!first_) {
      first_ = fault;
      message_ = make_message();
    }
    if (*first_ == fault) ++count_;
  }

  std::optional<Fault> first_;
  std::string message_;
  std::uint64_t count_ = 0;
};

// Reads, checks and hands on every sound row: keep(row, values, length).
template <typename Keep>
absl::Status ForEachRow(BufferedReader& in, const VectorLayout& layout, Metric metric,
                        LengthRange& lengths, Keep keep) {
  std::vector<char> bytes(layout.row_bytes());
  std::vector<double> values(layout.dim);
  FaultReport faults;
  lengths = {.shortest = std::numeric_limits<double>::infinity(), .longest = 0};
  for (std::uint64_t row = 0; row < layout.row_count; ++row) {
    if (absl::Status status = in.ReadExact(bytes); !status.ok()) return status;
    DecodeElements(layout.type, bytes, values);
    if (metric == Metric::kDot && layout.type == ElementType::kFloat64) {
      // What is kept is the fp32 row, so it is the fp32 row whose length must lie within bounds.
      // Beyond fp32's range the double stays, to be named by its length.
      for (double& value : values) {
        if (std::abs(value) <= kNormMax) value = static_cast<double>(static_cast<float>(value));
      }
    }
    const std::optional<double> length = faults.Check(row, values);
    if (!length) continue;
    lengths.shortest = std::min(lengths.shortest, *length);
    lengths.longest = std::max(lengths.longest, *length);
    keep(row, values, *length);
  }
  return faults.ToStatus(in.shown(), layout.row_count);
}

}  // namespace

absl::StatusOr<Matrix> ReadMatrix(BufferedReader& in, const VectorLayout& layout, Metric metric,
                                  LengthRange& lengths) {
  absl::StatusOr<Matrix> matrix = Matrix::Create(layout.row_count, layout.dim);
  if (!matrix.ok()) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: {}", in.shown(), std::string(matrix.status().message())));
  }
  const absl::Status status =
      ForEachRow(in, layout, metric, lengths,
                 [&](std::uint64_t row, std::span<const double> values, double length) {
                   const double scale = metric == Metric::kCosine ? 1 / length : 1;
                   float* const kept = matrix->MutableRow(row);
                   for (std::size_t i = 0; i < values.size(); ++i) {
                     kept[i] = static_cast<float>(values[i] * scale);
                   }
                 });
  if (!status.ok()) return status;
  return matrix;
}

absl::Status CheckRows(BufferedReader& in, const VectorLayout& layout, Metric metric,
                       LengthRange& lengths) {
  return ForEachRow(in, layout, metric, lengths,
                    [](std::uint64_t, std::span<const double>, double) {});
}

}  // namespace simile::data
