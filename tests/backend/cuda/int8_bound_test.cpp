// Attacks the int8 scan's bound with the codes that its own kernels form: no row that reaches a
// threshold may be below the gate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/cuda/emulated_gpu.h"
#include "backend/cuda/int8_gate_calls.h"
#include "backend/segments.h"
#include "certificate/canonical_score.h"
#include "certificate/device_bounds.h"
#include "certificate/exact_rotation.h"
#include "certificate/rotation.h"
#include "emulated_cuda/device_array.h"
#include "kernels/convert.h"
#include "kernels/int8_gate.cuh"

namespace simile::backend {
namespace {

using certificate::Rotation;
using emulated_cuda::DeviceArray;
using kernels::Int8Query;
using kernels::Int8Row;
using tests::PaddedRows;
using tests::SeededRandom;

enum class Family : std::uint8_t {
  kUniform,
  kNearDuplicates,
  kMostCut,
  kUnequal,
  kOneSign,
  kAlongQueryErrors,
  kCount
};

// Rows, queries that are made from the errors of the rows' codes, and what the device makes of
// both.
class Int8Case {
 public:
  Int8Case(Family family, std::size_t dim, std::size_t row_count, std::uint64_t seed)
      : random_(seed), rotation_(PaddedDim(dim)), rows_(row_count, dim), queries_(kQueries, dim) {
    tests::ResetEmulatedGpu(tests::CardOf(0), seed);
    DrawRows(family);
    ConvertRows();
    DrawQueries();
    ConvertQueries();
    if (family == Family::kAlongQueryErrors) {
      DrawRowsAlongQueryErrors();
      ConvertRows();
      ConvertQueries();
    }
  }

  // |y - x'| of a row, from the CPU's rotation.
  double MeasureResidual(std::size_t row) const {
    const std::vector<float> rotated = Rotated(rows_.view()[row], unit_);
    double squares = 0;
    for (std::size_t i = 0; i < rotated.size(); ++i) {
      const double lost = static_cast<double>(rotated[i]) - Decoded(row, i);
      squares += lost * lost;
    }
    return std::sqrt(squares);
  }
  // |R q - q'| of a query, likewise.
  double ResidualOfQuery(std::size_t query) const {
    double squares = 0;
    for (const double lost : LostOfQuery(query)) squares += lost * lost;
    return std::sqrt(squares);
  }
  double CanonicalInUnits(std::size_t query, std::size_t row) const {
    const auto score = static_cast<double>(
        certificate::CanonicalScoreReference(rows_.view()[row], queries_.view()[query]));
    return score * unit_ * units_of_queries_[query];
  }
  float SumProducts(std::size_t query, std::size_t row) const {
    const std::size_t stride = rotation_.rotated_dim();
    int high = 0, low = 0;
    for (std::size_t i = 0; i < stride; ++i) {
      const int code = codes_[row * stride + i];
      high += planes_[query * 2 * stride + i] * code;
      low += planes_[(query * 2 + 1) * stride + i] * code;
    }
    return kernels::Int8Sum(high, low);
  }

  // Expects every row at or above the threshold to be a hit whose upper bound holds. Returns how
  // close the worst one comes to the bound, 1 being on it.
  double ExpectNoneDropped(std::size_t query, float threshold) const {
    double closest = 0;
    for (std::size_t row = 0; row < rows_.row_count(); ++row) {
      const double canonical = CanonicalInUnits(query, row);
      if (canonical < static_cast<double>(threshold)) continue;
      const auto [excess, kappa] = tests::Int8BoundedAt(converted_[query], limits_, threshold,
                                                        SumProducts(query, row), terms_[row]);
      const double upper = static_cast<double>(excess) + static_cast<double>(threshold);
      EXPECT_GE(excess, 0) << "query " << query << ", row " << row << ", threshold " << threshold;
      EXPECT_GE(upper, canonical) << "query " << query << ", row " << row;
      const double bound = static_cast<double>(kappa) * static_cast<double>(terms_[row].residual) +
                           static_cast<double>(converted_[query].margin);
      closest = std::max(closest, 1 - (upper - canonical) / bound);
    }
    return closest;
  }

  static constexpr std::size_t kQueries = 6;

  PaddedRows& rows() { return rows_; }
  const std::vector<Int8Row>& terms() const { return terms_; }
  const std::vector<Int8Query>& queries() const { return converted_; }
  const certificate::Int8Limits& measured() const { return measured_; }

 private:
  std::vector<float> Rotated(std::span<const float> vector, double unit) const {
    std::vector<float> values(rotation_.rotated_dim(), 0.0F), scratch(values.size());
    for (std::size_t i = 0; i < rows_.dim(); ++i) {
      values[i] = vector[i] * static_cast<float>(unit);
    }
    rotation_.Rotate<1>(values.data(), scratch.data());
    return values;
  }
  // R q - q'
  std::vector<double> LostOfQuery(std::size_t query) const {
    const std::size_t stride = rotation_.rotated_dim();
    const std::vector<float> rotated = Rotated(queries_.view()[query], units_of_queries_[query]);
    std::vector<double> lost(stride);
    for (std::size_t i = 0; i < stride; ++i) {
      const int code =
          128 * planes_[query * 2 * stride + i] + planes_[(query * 2 + 1) * stride + i];
      lost[i] =
          static_cast<double>(rotated[i]) - static_cast<double>(converted_[query].scale) * code;
    }
    return lost;
  }
  double Decoded(std::size_t row, std::size_t i) const {
    return static_cast<double>(terms_[row].scale) * codes_[row * rotation_.rotated_dim() + i];
  }

  void DrawRows(Family family) {
    const tests::ExactRotation exact(rotation_);
    for (std::size_t row = 0; row < rows_.row_count(); ++row) {
      const std::span<float> values = rows_[row];
      for (float& value : values) {
        value = random_.Signed();
        if (family == Family::kOneSign) value = std::abs(value) + 1;
      }
      if (family == Family::kNearDuplicates && row > 0) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = rows_[0][i] * (1 + values[i] * 0x1p-9F);
        }
      }
      if (family ==
          Family::kMostCut) {  // one large rotated coordinate, the others just below a code
        std::vector<long double> rotated(rotation_.rotated_dim(), 0.49L / 127);
        rotated[random_.Below(rotated.size())] = 1;
        const auto back = exact.ApplyInverse(rotated);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(back[i]);
      }
      // Of rows as long as the longest, the bound allows for nothing more than they lose.
      const double length = family == Family::kMostCut ? 1 : 1 + 0.5 * std::abs(random_.Signed());
      const int exponent = family == Family::kUnequal ? -static_cast<int>(random_.Below(90)) : 0;
      tests::ScaleTo(values, std::ldexp(length, exponent));
    }
    std::ranges::fill(rows_[3], 0.0F);
    MeasureUnit();
  }

  // Rows whose codes lose nothing and that meet all that the codes of a query lose: the worst rows
  // for it.
  void DrawRowsAlongQueryErrors() {
    const tests::ExactRotation exact(rotation_);
    for (std::size_t row = 0; row < rows_.row_count(); ++row) {
      std::vector<long double> towards;
      for (const double lost : LostOfQuery(row % kQueries)) towards.push_back(lost < 0 ? -1 : 1);
      const auto back = exact.ApplyInverse(towards);
      const std::span<float> values = rows_[row];
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(back[i]);
      tests::ScaleTo(values, 1);
    }
    MeasureUnit();
  }

  void MeasureUnit() {
    double longest = 0;
    for (std::size_t row = 0; row < rows_.row_count(); ++row) {
      longest = std::max(longest, certificate::Length(rows_.view()[row]));
    }
    unit_ = certificate::ChooseUnit(longest);
  }

  void ConvertRows() {
    const std::size_t stride = rotation_.rotated_dim(), count = rows_.row_count();
    std::vector<float> signs(rotation_.first_signs().begin(), rotation_.first_signs().end());
    signs.insert(signs.end(), rotation_.second_signs().begin(), rotation_.second_signs().end());
    signs_ = signs;
    std::vector<unsigned> row_of(count);
    for (std::size_t i = 0; i < count; ++i) row_of[i] = static_cast<unsigned>(i);
    const MatrixView view = rows_.view();
    const DeviceArray<float> rows(
        std::vector<float>(view.data(), view.data() + count * view.padded_dim()));
    const DeviceArray<float> on_device(signs);
    const DeviceArray<unsigned> numbers(row_of), maxima(std::vector<unsigned>(2, 0));
    const DeviceArray<signed char> codes(count * stride);
    const DeviceArray<Int8Row> terms(count);
    const kernels::ConvertToInt8Arguments arguments{rows.data(),
                                                    numbers.data(),
                                                    static_cast<unsigned>(count),
                                                    static_cast<unsigned>(view.padded_dim()),
                                                    static_cast<float>(unit_),
                                                    on_device.data(),
                                                    static_cast<unsigned>(stride),
                                                    codes.data(),
                                                    terms.data(),
                                                    maxima.data()};
    ASSERT_EQ(kernels::LaunchConvertRowsToInt8(arguments, nullptr), cudaSuccess);
    codes_ = codes.Read();
    terms_ = terms.Read();
    const std::vector<unsigned> greatest = maxima.Read();
    measured_ = certificate::MakeInt8Limits(view.padded_dim(), std::bit_cast<float>(greatest[0]),
                                            std::bit_cast<float>(greatest[1]));
    limits_ = {measured_.decoded, measured_.residual, measured_.per_length, measured_.rest};
  }

  // Rows, random directions, and a row with the error of its codes: the worst query for it.
  void DrawQueries() {
    const tests::ExactRotation exact(rotation_);
    for (std::size_t query = 0; query < kQueries; ++query) {
      const std::span<float> values = queries_[query];
      const std::size_t row = random_.Below(3);  // the one after them is zeros
      const double share = query % 3 == 2 ? 0.7 * std::abs(random_.Signed()) : 0;
      const std::vector<float> rotated = Rotated(rows_.view()[row], unit_);
      std::vector<long double> towards(rotated.size());
      const double length = std::max(MeasureResidual(row), 1e-30);
      for (std::size_t i = 0; i < rotated.size(); ++i) {
        towards[i] = share * static_cast<double>(rotated[i]) +
                     (static_cast<double>(rotated[i]) - Decoded(row, i)) / length;
      }
      const auto back = exact.ApplyInverse(towards);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = query % 3 == 0   ? random_.Signed()
                    : query % 3 == 1 ? rows_[row][i] + 0x1p-20F * random_.Signed()
                                     : static_cast<float>(back[i]);
      }
      tests::ScaleTo(values, static_cast<double>(std::abs(random_.Wild(-30, 29))));
      units_of_queries_.push_back(certificate::ChooseUnit(certificate::Length(values)));
    }
  }

  void ConvertQueries() {
    const MatrixView view = queries_.view();
    const std::size_t stride = rotation_.rotated_dim();
    std::vector<kernels::QueryTerms> terms(kQueries);
    for (std::size_t query = 0; query < kQueries; ++query) {
      terms[query].unit_of_query = static_cast<float>(units_of_queries_[query]);
    }
    const DeviceArray<float> vectors(
        std::vector<float>(view.data(), view.data() + kQueries * view.padded_dim()));
    const DeviceArray<kernels::QueryTerms> terms_on_device(terms);
    const DeviceArray<float> signs(signs_);
    const DeviceArray<signed char> planes(kQueries * 2 * stride);
    const DeviceArray<Int8Query> converted(kQueries);
    kernels::Pass pass{};
    pass.queries = vectors.data();
    pass.terms = terms_on_device.data();
    pass.batch = kQueries;
    pass.stride = static_cast<unsigned>(view.padded_dim());
    kernels::Int8Rows int8;
    int8.signs = signs.data();
    int8.stride = static_cast<unsigned>(stride);
    int8.limits = limits_;
    int8.planes = planes.data();
    int8.queries = converted.data();
    ASSERT_EQ(kernels::LaunchConvertQueriesToInt8(pass, int8, nullptr), cudaSuccess);
    planes_ = planes.Read();
    converted_ = converted.Read();
    EXPECT_EQ(emulated_cuda::TakeReport(), "");
  }

  SeededRandom random_;
  const Rotation rotation_;
  PaddedRows rows_, queries_;
  double unit_ = 1;
  std::vector<double> units_of_queries_;
  std::vector<float> signs_;
  std::vector<signed char> codes_, planes_;
  std::vector<Int8Row> terms_;
  std::vector<Int8Query> converted_;
  certificate::Int8Limits measured_;
  kernels::Int8Limits limits_{};
};

// Thresholds at every row's own score, where the gate just has to let it through.
double Attack(const Int8Case& one, std::size_t row_count) {
  double closest = 0;
  for (std::size_t query = 0; query < Int8Case::kQueries; ++query) {
    for (std::size_t row = 0; row < row_count; ++row) {
      const double score = one.CanonicalInUnits(query, row);
      auto threshold = static_cast<float>(score);
      if (static_cast<double>(threshold) > score) threshold = std::nextafter(threshold, -2.0F);
      closest = std::max(closest, one.ExpectNoneDropped(query, threshold));
    }
    one.ExpectNoneDropped(query, kernels::kLowestScore);
  }
  return closest;
}

TEST(Int8BoundTest, DropsNoRowThatReachesTheThreshold) {
  SeededRandom random(3);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto family = static_cast<Family>(seed % static_cast<std::uint64_t>(Family::kCount));
    const std::size_t dim = random.Between(1, random.OneIn(2) ? 70 : 300);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", dim " + std::to_string(dim));
    const Int8Case one(family, dim, 12, seed);
    const double closest = Attack(one, 12);
    EXPECT_LE(closest, 1);
    if (HasFailure()) return;
  }
}

TEST(Int8BoundTest, HoldsForTheLongestRows) {
  const Int8Case one(Family::kUniform, 4'096, 4, 1);
  EXPECT_LE(Attack(one, 4), 1);
}

TEST(Int8BoundTest, IsReachedByQueriesAlongTheErrors) {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    closest = std::max(closest, Attack(Int8Case(Family::kUniform, 192, 8, seed), 8));
  }
  EXPECT_GT(closest, 0.9) << "the attack is weak, or the bound is";
}

TEST(Int8BoundTest, IsReachedByRowsAlongTheErrorsOfQueries) {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    closest = std::max(closest, Attack(Int8Case(Family::kAlongQueryErrors, 192, 8, seed), 8));
  }
  EXPECT_GT(closest, 0.5) << "the attack is weak, or the bound is";
}

TEST(Int8BoundTest, MeasuresWhatTheCodesLose) {
  for (const Family family : {Family::kUniform, Family::kMostCut, Family::kUnequal}) {
    Int8Case one(family, 100, 20, 7);
    for (std::size_t row = 0; row < 20; ++row) {
      const double residual = one.MeasureResidual(row);
      EXPECT_GE(static_cast<double>(one.terms()[row].residual), residual) << row;
      EXPECT_LE(static_cast<double>(one.terms()[row].residual), residual * (1 + 1e-6)) << row;
      EXPECT_LE(one.terms()[row].residual, one.measured().residual);
    }
    for (std::size_t query = 0; query < Int8Case::kQueries; ++query) {
      const Int8Query& converted = one.queries()[query];
      const certificate::Int8Limits limits = one.measured();
      const double margin =
          one.ResidualOfQuery(query) * static_cast<double>(limits.decoded) +
          static_cast<double>(converted.length) * static_cast<double>(limits.per_length) +
          static_cast<double>(limits.rest);
      EXPECT_GE(static_cast<double>(converted.margin), margin) << query;
      EXPECT_LE(static_cast<double>(converted.margin), margin * (1 + 1e-6)) << query;
    }
  }
}

TEST(Int8BoundTest, IsSmallEnoughToBeUseful) {
  Int8Case one(Family::kUniform, 384, 32, 5);
  EXPECT_LT(one.measured().residual, 0.013F);
  const kernels::Int8Limits limits{one.measured().decoded, one.measured().residual,
                                   one.measured().per_length, one.measured().rest};
  for (const Int8Query& query : one.queries()) {
    EXPECT_LT(query.margin, 2e-4F) << "15 bits of the query";
    // The perpendicular part: near the longest row's own direction little of the residual counts.
    const float half = kernels::Int8Kappa(query, limits, 0.5F * query.length * limits.decoded);
    EXPECT_LT(half, 0.9F * query.length);
    EXPECT_EQ(kernels::Int8Kappa(query, limits, -0.5F), query.length);
    EXPECT_EQ(kernels::Int8Kappa(query, limits, 1.2F), 0);
  }
}

}  // namespace
}  // namespace simile::backend
